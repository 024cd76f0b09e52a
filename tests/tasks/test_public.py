"""The names of munjang.tasks: each is where the table says, for people, for type checkers and at run time."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from munjang import tasks


@pytest.mark.parametrize("name", sorted(tasks.PUBLIC))
def test_each_name(name: str) -> None:
    assert getattr(tasks, name) is getattr(import_module(tasks.PUBLIC[name]), name)


def test_type_checkers_see_the_same() -> None:
    source = Path(tasks.__file__).read_text(encoding="utf-8")
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("munjang.tasks")
        for alias in node.names
    }
    assert seen == tasks.PUBLIC
    assert dir(tasks) == sorted(tasks.PUBLIC)


def test_a_star_brings_all() -> None:
    names: dict[str, object] = {}
    exec("from munjang.tasks import *", names)
    assert set(tasks.PUBLIC) <= set(names)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no public name 'keyword'; choose from"):
        tasks.keyword  # type: ignore[attr-defined]  # noqa: B018


def test_importing_loads_nothing() -> None:
    code = "import sys, munjang.tasks; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
