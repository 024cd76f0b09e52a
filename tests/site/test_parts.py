"""Parts that are made while the site is built: each is a table, a list or sections, from the code as it is now."""

from pathlib import Path

import pytest

from docs.site.links import problems
from docs.site.parts import PARTS
from munjang.cli import VERBS


@pytest.mark.parametrize("name", [name for name in PARTS if name != "http"])
def test_parts_are_tables_or_lists(name: str) -> None:
    made = PARTS[name]()
    assert "|---|" in made or all(line.startswith("- ") for line in made.splitlines())


def test_every_command_has_a_section_with_options() -> None:
    sections = PARTS["commands"]().split("\n## ")
    assert [section.removeprefix("## ").split("\n")[0] for section in sections] == [*VERBS]
    assert all("```\nmunjang " in section and "| `-" in section for section in sections)


def test_routes_come_from_openapi() -> None:
    pytest.importorskip("fastapi")
    text = PARTS["http"]()
    assert "## POST /v1/embeddings" in text
    assert "## POST /search" in text
    assert "| `k` | integer | `10` |" in text


def test_broken_links_and_foreign_scripts_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><script src="https://x.y/z.js">',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="here">b</p>', encoding="utf-8")
    assert problems(tmp_path) == [
        "a.html: link to b.html#gone: no such anchor",
        "a.html: link to c.html: no such file",
        "a.html: loads https://x.y/z.js from elsewhere",
    ]
