"""The public names of each task: they are where its table says, for people, for type checkers and at run time."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from munjang import tasks

FOLDERS = sorted(path.parent for path in Path(tasks.__file__).parent.glob("*/__init__.py"))
PACKAGES = [import_module(f"munjang.tasks.{folder.name}") for folder in FOLDERS]
each_task = pytest.mark.parametrize("task", PACKAGES, ids=[folder.name for folder in FOLDERS])


@each_task
def test_every_name_is_where_the_table_says(task: ModuleType) -> None:
    for name, module in task.PUBLIC.items():
        assert getattr(task, name) is getattr(import_module(module), name)


@each_task
def test_no_module_hides_a_public_name(task: ModuleType) -> None:
    modules = {path.stem for path in Path(task.__path__[0]).iterdir()}
    assert not modules & set(task.PUBLIC)


@each_task
def test_type_checkers_see_the_same(task: ModuleType) -> None:
    source = Path(str(task.__file__)).read_text(encoding="utf-8")
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("munjang.tasks")
        for alias in node.names
    }
    assert seen == task.PUBLIC
    assert dir(task) == sorted(task.PUBLIC)


@each_task
def test_a_star_brings_all(task: ModuleType) -> None:
    names: dict[str, object] = {}
    exec(f"from {task.__name__} import *", names)
    assert set(task.PUBLIC) <= set(names)


@each_task
def test_an_unknown_name(task: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no public name 'keyword'; choose from"):
        task.keyword  # noqa: B018


def test_importing_loads_nothing() -> None:
    imports = ", ".join(task.__name__ for task in PACKAGES)
    code = f"import sys, {imports}; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
