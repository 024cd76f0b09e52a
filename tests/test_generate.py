"""The documents follow code and records: a change that they don't show is noticed, and `make docs FIX=1` repairs it."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generate import PARTS, additions, commands, scores, stale, write
from docs.generate.part import Block, Fact, Stale
from munjang import cli

ROOT = Path(__file__).parents[1]
LISTS = ("docs/reference/commands.md", "docs/reference/commands.ko.md")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the generator reads; the large weights are links."""
    root = tmp_path / "copy"

    def link(source: str, target: str) -> None:
        os.symlink(source, target) if source.endswith(".safetensors") else shutil.copy2(source, target)

    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in ("munjang", "docs", "attack", "benchmarks", "examples", "recipes"):
        shutil.copytree(ROOT / name, root / name, copy_function=link, ignore=ignored)
    (root / "tests").mkdir()
    for path in ROOT.glob("*.md"):
        shutil.copy2(path, root)
    return root


def parts_of(problems: list[str]) -> set[str]:
    return {problem.split(": ")[1].split(" is out of date")[0] for problem in problems}


def test_nothing_is_stale(copy: Path) -> None:
    assert stale(copy) == []
    assert write(copy) == []


def test_a_changed_score_is_noticed_and_repaired(copy: Path) -> None:
    record = copy / scores.RECORD
    found = json.loads(record.read_text(encoding="utf-8"))
    found["models"][scores.OURS]["korsts-test"]["spearman_cosine"] = 84.21
    record.write_text(json.dumps(found), encoding="utf-8")
    problems = stale(copy)
    assert parts_of(problems) == {"scores", "scores of the bundled encoder"}
    assert all(problem.endswith("run: make docs FIX=1") for problem in problems)
    documents = {"munjang/models/ko-en-small/README.md", "docs/models.md", "docs/features.md", "docs/features.ko.md"}
    assert {problem.split(": ")[0] for problem in problems} == documents
    assert set(write(copy)) == documents
    assert all("84.21" in (copy / name).read_text(encoding="utf-8") for name in documents)
    assert stale(copy) == []


def test_other_weights_are_noticed(copy: Path) -> None:
    weights = copy / scores.WEIGHTS.format("ko-en-small")
    weights.unlink()
    weights.write_bytes(b"other weights")
    assert any("measured with other weights than munjang/models/ko-en-small" in problem for problem in stale(copy))


def test_a_new_folder_is_noticed_and_repaired(copy: Path) -> None:
    folder = copy / "munjang/tasks/summaries"
    folder.mkdir()
    (folder / "summary.py").write_text('"""A summary."""\n', encoding="utf-8")
    assert any("munjang/tasks/summaries is not on the map" in problem for problem in stale(copy))
    (folder / "__init__.py").write_text('"""Summaries: the sentences that say most."""\n', encoding="utf-8")
    assert stale(copy) == ["CONTRIBUTING.md: map is out of date; run: make docs FIX=1"]
    assert write(copy) == ["CONTRIBUTING.md"]
    assert "    summaries/       Summaries: the sentences that say most" in (copy / "CONTRIBUTING.md").read_text(
        "utf-8"
    )


def test_a_folder_that_is_gone_is_noticed(copy: Path) -> None:
    shutil.rmtree(copy / "munjang/scale")
    shutil.rmtree(copy / "munjang/tasks/topics")
    problems = stale(copy)
    assert (
        sum("names scale, which is not in munjang/" in problem for problem in problems) == 3
    )  # two maps and a picture


def test_a_new_error_is_noticed(copy: Path) -> None:
    with (copy / "munjang/index/candidates.py").open("a", encoding="utf-8") as file:
        file.write('\n\nclass NoHits(InputError):\n    """Nothing was found."""\n')
    assert {problem.split(": ")[0] for problem in stale(copy)} == {"docs/reference/errors.md", "munjang/errors.py"}


NEW_VERB = '''"""munjang summarize FILE: shorten texts.

munjang summarize articles.txt
"""

from dataclasses import dataclass

from munjang.cli.options import option

SUMMARY_KO = "글 줄이기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang summarize`."""

    file: str = option("file of texts", is_positional=True)
'''


@pytest.fixture
def new_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A verb in a folder of its own: the file that has to be written; its line is in the table."""
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setitem(cli.VERBS, "summarize", "shorten texts")
    path = tmp_path / "summarize.py"
    path.write_text(NEW_VERB, encoding="utf-8")
    yield path
    sys.modules.pop("munjang.cli.summarize", None)


def test_a_new_verb_is_noticed(new_verb: Path, copy: Path) -> None:
    problems = stale(copy)
    assert {problem.split(": ")[0] for problem in problems} == set(LISTS)
    assert parts_of(problems) == {"commands", "number of commands"}
    assert set(write(copy)) == set(LISTS)
    for document, summary in zip(LISTS, ("shorten texts", "글 줄이기"), strict=True):
        assert re.search(rf"^munjang summarize articles.txt +# {summary}$", (copy / document).read_text("utf-8"), re.M)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("munjang summarize articles.txt\n", "the docstring of munjang/cli/summarize.py has no example"),
        ("is_positional=True", "the example `munjang summarize articles.txt` is not what the command takes"),
        ("SUMMARY_KO", "no SUMMARY_KO"),
    ],
)
def test_a_verb_without_what_the_documents_need(new_verb: Path, line: str, problem: str) -> None:
    new_verb.write_text(NEW_VERB.replace(line, "OTHER" if line.isupper() else ""), encoding="utf-8")
    with pytest.raises(Stale, match=problem):
        commands.listing(ROOT, LISTS[1])


def test_a_verb_with_another_summary_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.VERBS, "encode", "something else")
    assert stale(ROOT) == [f"{LISTS[0]}: commands is out of date; run: make docs FIX=1"]


@pytest.mark.parametrize("row", [row for row in additions.ADDITIONS if row[2]], ids=lambda row: row[0])
def test_a_table_that_moved_is_noticed(row: tuple[str, str, tuple[tuple[str, str], ...]], copy: Path) -> None:
    path, name = row[2][-1]
    file = copy / path
    file.write_text(re.sub(rf"^{name}\b", "MOVED", file.read_text(encoding="utf-8"), flags=re.MULTILINE), "utf-8")
    with pytest.raises(Stale, match=f"no {name} in {path}"):
        additions.table(copy, "CONTRIBUTING.md")


def test_a_sentence_and_a_block_that_are_gone() -> None:
    fact = Fact("apples", {"a.md": r"(\d+) apples"}, lambda root: ("3",))
    assert fact.fill(ROOT, "a.md", "We have 2 apples.") == "We have 3 apples."
    with pytest.raises(Stale, match="is there 0 times"):
        fact.fill(ROOT, "a.md", "We have pears.")
    block = Block("pears", ("a.md",), lambda root, document: "new")
    assert block.fill(ROOT, "a.md", "<!-- pears -->\n\nold\n\n<!-- end of pears -->") == (
        "<!-- pears -->\n\nnew\n\n<!-- end of pears -->"
    )
    with pytest.raises(Stale, match="no place for pears"):
        block.fill(ROOT, "a.md", "text")


def test_parts_name_documents_that_exist() -> None:
    assert all((ROOT / document).is_file() for part in PARTS for document in part.documents)
