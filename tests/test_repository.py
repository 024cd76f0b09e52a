"""Check that what the repository says of itself is true: commands, links, targets, version, example."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import munjang
from munjang.cli import main
from tests.training.made import sentences

ROOT = Path(__file__).parents[1]
TARGETS = {"install", "check", "fix", "test", "test-full", "bench", "demo", "docs"}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def run(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ci_runs_the_readme_test_command() -> None:
    lines = [line for line in read(".ci/run").splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert lines == ["make test", "make image"]
    assert re.search(r"^make test\b", read("README.md"), re.MULTILINE)
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_makefile_has_the_targets() -> None:
    assert set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE)) >= TARGETS


def test_contributing_lists_the_slow_tests() -> None:
    section = read("CONTRIBUTING.md").split("## What `make test-full` adds\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(tests/[\w/]+\.py)` \|", section, re.MULTILINE)
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    slow = {str(path.relative_to(ROOT)) for path in files if "pytest.mark.slow" in path.read_text(encoding="utf-8")}
    assert sorted(listed) == sorted(slow | {"tests/test_repository.py"})


def test_version_is_written_once() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "munjang.__version__"}
    assert f"## {munjang.__version__}" in read("CHANGELOG.md")


def test_every_direct_dependency_is_pinned_and_explained() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-") for requirement in wanted} - {"munjang"}
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in read("constraints.txt").splitlines()}
    explained = read("docs/dependencies.md").lower().replace("_", "-")
    assert names - pinned == set()
    assert {name for name in names if f"| {name} |" not in explained} == set()


def test_examples_need_only_what_pyproject_names() -> None:
    """A file of examples/ imports the standard library, the package, and what pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    }
    named = {re.match(r"[\w-]+", requirement)[0].replace("-", "_").lower() for requirement in wanted}
    for path in (ROOT / "examples").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) if node.module}
        foreign = {name.split(".")[0] for name in imported} - sys.stdlib_module_names - {"munjang", "examples"}
        assert foreign <= named, path
        if path.parent == ROOT / "examples":  # the small ones run after `pip install .`
            core = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
            assert foreign <= core, path


def test_documents_hold() -> None:
    assert "links" in run(sys.executable, "-m", "docs.check")


def test_quickstart_runs() -> None:
    output = run(sys.executable, "examples/quickstart.py")
    assert "A cat sleeps on the sofa." in output.splitlines()[1]
    assert "airport leaves every half hour" in output.splitlines()[-2]


@pytest.mark.slow  # trains until it has learned: 15 s
def test_training_example_runs() -> None:
    """It says the correlation on rows that were held out, before training and after it."""
    before, after = (float(line.split(": ")[1]) for line in run(sys.executable, "examples/train_sts.py").splitlines())
    assert after > before + 0.3


def block(document: str, language: str, word: str) -> str:
    """The first block of a document in this language with this word in it."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", read(document), re.MULTILINE | re.DOTALL)
    return next(code for code in blocks if word in code)


@pytest.fixture
def workplace(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and the files that the documents speak of."""
    (tmp_path / "path/to/a/plain").mkdir(parents=True)
    (tmp_path / "path/to/a/plain/bert").symlink_to(tiny_bert)
    scores = [str(place % 5 + 1) for place in range(12)]
    labels = ["entailment", "neutral", "contradiction"] * 4
    files = {
        "nli-train.tsv": {"label": labels},
        **{f"{name}.tsv": {"score": scores} for name in ("stsb-train", "stsb-dev", "stsb-test", "sick-train")},
        **{name: {"negative": sentences(12, 99)} for name in ("triplets.tsv", "more-triplets.tsv")},
    }
    heads = {"nli": ("premise", "hypothesis"), "sts": ("sentence1", "sentence2"), "sic": ("sentence1", "sentence2")}
    for place, (name, last) in enumerate(files.items()):
        head = heads.get(name[:3], ("anchor", "positive"))
        columns = [sentences(12, 2 * place), sentences(12, 2 * place + 1), *last.values()]
        rows = ["\t".join([*head, *last]), *("\t".join(row) for row in zip(*columns, strict=True))]
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", ["README.md", "docs/guides/train.md"])
def test_training_in_the_documents_runs(document: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block(document, "python", "train("), document, "exec"), {})
    assert -1 <= float(capsys.readouterr().out) <= 1
    (folder,) = [path.parent for path in workplace.glob("*sts/modules.json")] or [workplace / "sbert"]
    assert "## Scores" in (folder / "README.md").read_text(encoding="utf-8")


def test_settings_file_in_the_documents_is_read(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace / "run.toml").write_text(block("docs/guides/train.md", "toml", "[[datasets]]"), encoding="utf-8")
    assert main(["train", "--config", "run.toml", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "24 rows for in_batch" in shown
    assert "scores taken as 1 to 5 (declared)" in shown
