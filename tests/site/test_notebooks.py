"""The notebooks of the learning path run offline within two minutes, and the outputs on the site are theirs."""

from pathlib import Path

import pytest

from docs.site import notebooks, pictures
from docs.site.prepare import CELL

NAMES = sorted(path.stem for path in notebooks.NOTEBOOKS.glob("*.py"))
CHAPTERS = notebooks.ROOT / "docs/learn"


def test_there_are_eight() -> None:
    assert [name[:2] for name in NAMES] == [f"{number}-" for number in range(1, 9)]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_of_this_code_and_both_chapters_show_them(name: str) -> None:
    record = notebooks.record_of(name)
    assert record["code"] == notebooks.digest(notebooks.NOTEBOOKS / f"{name}.py"), (
        f"python -m docs.site.notebooks {name}"
    )
    assert record["seconds"] < notebooks.MAX_SECONDS
    english, korean = (
        CELL.findall((CHAPTERS / f"{name}{end}").read_text(encoding="utf-8")) for end in (".md", ".ko.md")
    )
    assert english == korean
    assert set(english) == set(record["cells"]) - {"setup"}


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_as_drawn(name: str) -> None:
    for ending, is_korean in ((".svg", False), (".ko.svg", True)):
        text = (pictures.IMAGES / f"{name}{ending}").read_text(encoding="utf-8")
        assert text == pictures.drawn(name, is_korean), "python -m docs.site.pictures"


@pytest.mark.slow  # each trains or encodes for up to a minute
@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs(name: str) -> None:
    record = notebooks.run(notebooks.NOTEBOOKS / f"{name}.py")
    kept = notebooks.record_of(name)["cells"]
    assert record["cpu_seconds"] < notebooks.MAX_SECONDS  # not of the clock, as other work may run beside it
    assert list(record["cells"]) == list(kept)
    assert [bool(cell["text"].strip()) for cell in record["cells"].values()] == [
        bool(cell["text"].strip()) for cell in kept.values()
    ]


def test_cells_are_read_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "# %% [markdown]\n# # Title\n\n# %% first\nx = 1\nprint(x)\n\n# %% second\nx + 1\n", encoding="utf-8"
    )
    assert [(cell.name, cell.is_text) for cell in notebooks.cells(path)] == [
        ("", True),
        ("first", False),
        ("second", False),
    ]
    assert notebooks.run_cells(path) == {"first": {"text": "1\n"}, "second": {"text": "2\n"}}
