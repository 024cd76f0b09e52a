"""The API reference names everything that is public, with examples that run."""

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from munjang import CrossEncoder

PAGES = sorted((Path(__file__).parents[2] / "docs/reference/api").glob("*.md"))
TASKS = ("classify", "cluster", "dedupe", "keywords", "paraphrases", "recommend", "topics")
PACKAGES = ("munjang", "munjang.index", "munjang.evaluation", *(f"munjang.tasks.{name}" for name in TASKS))


def examples(page: Path) -> str:
    """All examples of a page, in order."""
    return "\n\n".join(re.findall(r"^```pycon\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


def public_names() -> Iterator[tuple[str, object]]:
    """Every public class and function, and every public method of a class, inherited ones too."""
    for package in PACKAGES:
        for name in importlib.import_module(package).__all__:
            thing = getattr(importlib.import_module(package), name)
            if name.startswith("__") or not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            yield name, thing
            for member in dir(thing) if inspect.isclass(thing) else ():
                function = getattr(thing, member)
                is_own = (getattr(function, "__module__", None) or "").startswith("munjang")
                if not member.startswith("_") and inspect.isroutine(function) and is_own:
                    yield f"{name}.{member}", function


NAMES = dict(public_names())


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> Iterator[None]:
    """The bundled re-ranker, which no example changes, is loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CrossEncoder, "load", cache(CrossEncoder.load))
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    found = doctest.DocTestParser().get_doctest(examples(page), {}, page.name, str(page), 0)
    assert found.examples
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags).run(found, out=output.append)
    assert result.failed == 0, "".join(output)


def test_every_public_name_is_on_a_page() -> None:
    shown = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    listed = {line.rpartition(".")[2] for line in re.findall(r"^::: ([\w.]+)$", shown, re.MULTILINE)}
    assert {name for name in NAMES if "." not in name} - listed == set()


def test_every_public_name_has_a_docstring_with_an_example() -> None:
    texts = {name: inspect.getdoc(thing) or "" for name, thing in NAMES.items()}
    without = {name for name, text in texts.items() if not re.search(r"^>>> ", text, re.MULTILINE)}
    assert without == set()
    assert {name for name, text in texts.items() if len(text) < 20} == set()
