"""What agents are told holds: examples run, names exist, two pages are enough, and the skill is in the package."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import munjang
from munjang.cli import VERBS
from munjang.objectives import OBJECTIVES

ROOT = Path(__file__).parents[2]
SKILL = Path(munjang.__file__).with_name("SKILL.md")
PAGES = [ROOT / "docs/agents.md", SKILL]
MAX_CHARACTERS = 6000  # two pages


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_and_names_exist(page: Path) -> None:
    text = read(page)
    assert len(text) < MAX_CHARACTERS
    code = "\n\n".join(re.findall(r"^```pycon\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    found = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    output: list[str] = []
    assert found.examples
    assert doctest.DocTestRunner().run(found, out=output.append).failed == 0, "".join(output)
    for module, name in re.findall(r"`(munjang(?:\.[a-z_]+)+)(?:\.([A-Z]\w*))?", text):
        parent, _, last = module.rpartition(".")
        assert hasattr(importlib.import_module(parent), last) or importlib.import_module(module)
        assert not name or hasattr(importlib.import_module(module), name)
    assert set(re.findall(r"(?:^|`)munjang ([a-z]+)", text, re.MULTILINE)) <= {*VERBS}


def test_the_skill_has_a_head() -> None:
    head = re.match(r"---\nname: munjang\ndescription: (.+)\n---\n", read(SKILL))
    assert head
    assert len(head[1]) < 500


def test_the_way_from_sentence_transformers_leads_to_names_that_exist() -> None:
    page = read(ROOT / "docs/guides/sentence-transformers.md")
    table = page.split("## Side by side")[1].split("\n## ")[0]
    ours = [line.split("|")[2] for line in table.splitlines() if line.startswith(("| `", "| `."))]
    assert len(ours) > 20
    objectives = {name for cell in ours for name in re.findall(r'`"(\w+)"`', cell)}
    assert objectives <= set(OBJECTIVES)
    assert len(objectives) > 5
    for module, function in re.findall(r"`(munjang\.[\w.]+)\.(\w+)\(", table):
        assert hasattr(importlib.import_module(module), function)
