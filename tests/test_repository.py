"""What the repository says of itself is true: commands, links, targets, version, example."""

import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import munjang
from tests.test_architecture import ORDER

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
    assert lines == ["make test"]
    assert re.search(r"^make test\b", read("README.md"), re.MULTILINE)
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_makefile_has_the_targets() -> None:
    assert set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE)) >= TARGETS


def test_readme_gives_the_import_order() -> None:
    assert ORDER in " ".join(read("README.md").replace("`", "").split())


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


def test_documents_hold() -> None:
    assert "links" in run(sys.executable, "docs/check.py")


def test_quickstart_runs() -> None:
    output = run(sys.executable, "examples/quickstart.py")
    assert "A cat sleeps on the sofa." in output.splitlines()[1]
