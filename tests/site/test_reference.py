"""The API reference names everything that is public; tests/test_doctests.py runs the examples that it shows."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from docs.site.text import fenced

PAGES = sorted((Path(__file__).parents[2] / "docs/reference/api").glob("*.md"))
TASKS = ("classify", "cluster", "dedupe", "keywords", "paraphrases", "recommend", "topics")
PACKAGES = ("munjang", "munjang.index", "munjang.evaluation", *(f"munjang.tasks.{name}" for name in TASKS))


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


def test_every_public_name_is_on_a_page() -> None:
    shown = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    listed = {line.rpartition(".")[2] for line in re.findall(r"^::: ([\w.]+)$", shown, re.MULTILINE)}
    assert {name for name in NAMES if "." not in name} - listed == set()


def test_every_public_name_has_a_docstring_with_an_example() -> None:
    texts = {name: inspect.getdoc(thing) or "" for name, thing in NAMES.items()}
    without = {name for name, text in texts.items() if not re.search(r"^>>> ", text, re.MULTILINE)}
    assert without == set()
    assert {name for name, text in texts.items() if len(text) < 20} == set()


def test_examples_are_shown_as_code() -> None:
    text = fenced(
        "Add numbers.\n\nReturns one.\n\n>>> for n in [1]:\n...     print(n)\n1\n>>> 2\n2\n\nMore.\n\n>>> 3\n3"
    )
    first, second = re.findall(r"```pycon\n(.*?)\n```", text, re.DOTALL)
    assert first == ">>> for n in [1]:\n...     print(n)\n1\n>>> 2\n2"
    assert second == ">>> 3\n3"
    assert text.startswith("Add numbers.\n\nReturns one.\n\n```")
