"""The map holds: imports point down, folders say what they are for, importing costs nothing that is optional."""

import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import munjang

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "munjang"
ORDER = (
    "cli > server, scale, compat > tasks > training > evaluation > index > bi_encoder, cross_encoder"
    " > stores, runtime, objectives, data > checkpoint > nn > text > errors, lazy, options, types"
)
LAYERS = [layer.split(", ") for layer in ORDER.split(" > ")]
DEPTH = {unit: depth for depth, layer in enumerate(LAYERS) for unit in layer}
OPTIONAL = {
    "accelerate",
    "datasets",
    "fastapi",
    "kiwipiepy",
    "lancedb",
    "pymilvus",
    "psycopg",
    "mteb",
    "ray",
    "onnx",
    "onnxruntime",
    "pandas",
    "peft",
    "pyarrow",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "tensorboard",
    "transformers",
}
VAGUE = {"utils", "util", "helpers", "common", "misc"}
MAX_LINES = 400


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def imported_modules(module: str) -> Iterator[str]:
    """Every module of ours that this one imports: at the top, inside functions and for type checkers alike."""
    path = FILES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "munjang")
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*parents, *filter(None, [node.module])])
            if source.split(".")[0] == "munjang":
                for alias in node.names:
                    name = f"{source}.{alias.name}"
                    public = munjang.PUBLIC.get(alias.name, source) if source == "munjang" else source
                    yield name if name in FILES else public


def unit(module: str) -> str:
    """The name on the map that a module belongs to: munjang.nn.pooling -> nn."""
    return module.split(".")[1]


INNER = [module for module in FILES if module != "munjang"]


@pytest.mark.parametrize("module", INNER)
def test_imports_point_down(module: str) -> None:
    if module == "munjang.__main__":
        assert {unit(name) for name in imported_modules(module)} <= {"cli"}
        return
    assert unit(module) in DEPTH, f"{module} is not on the map; put it under one of {', '.join(DEPTH)}"
    for name in imported_modules(module):
        is_root = name == "munjang"  # __version__
        if not is_root and unit(name) != unit(module) and (unit(module), unit(name)) != ("types", "errors"):
            assert DEPTH[unit(name)] > DEPTH[unit(module)], f"{module} imports {name}; the order is {ORDER}"


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_import_cycles() -> None:
    assert find_cycle({module: set(imported_modules(module)) - {"munjang"} for module in INNER}) == []


def test_names_say_what_for() -> None:
    vague = {module for module in FILES if VAGUE & set(module.split("."))}
    # The incumbent's own name: code written for it says `from sentence_transformers import util`.
    assert vague - {"munjang.compat.util"} == set()


def test_no_file_is_too_long() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in FILES.items()}
    assert {module: lines for module, lines in lengths.items() if lines > MAX_LINES} == {}


def modules_after(statement: str) -> set[str]:
    code = f"import json, sys; {statement}; print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_is_lazy() -> None:
    assert modules_after("import munjang") & (OPTIONAL | {"torch", "numpy", "tokenizers"}) == set()


@pytest.mark.parametrize("name", sorted(munjang.PUBLIC))
def test_public_names_need_no_extra(name: str) -> None:
    assert modules_after(f"from munjang import {name}") & OPTIONAL == set()


@pytest.mark.slow  # ten processes that import torch: 15 s
def test_importing_costs_little_more_than_torch() -> None:
    """At most 20 % (7 to 11 % measured) over what is needed anyway; in turns, so that a busy machine slows both."""
    needed, ours = "import torch, tokenizers, safetensors", "import munjang; munjang.BiEncoder"
    times: dict[str, list[float]] = {needed: [], ours: []}
    for _ in range(5):
        for statement, taken in times.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
            taken.append(time.perf_counter() - start)
    assert min(times[ours]) <= 1.2 * min(times[needed]), times


def test_all_is_what_is_exported() -> None:
    assert sorted(munjang.__all__) == sorted([*munjang.PUBLIC, "__version__"])
    assert dir(munjang) == sorted(munjang.__all__)
    for name in munjang.PUBLIC:
        assert getattr(munjang, name).__name__ == name


def test_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="no public name 'Encoder'; choose from BiEncoder"):
        munjang.Encoder  # noqa: B018  # the access is the test


def asserting_functions(tree: ast.Module) -> set[str]:
    """Functions that can fail: by assert, pytest.raises, an assert_* call, or a function of this file that does."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    calls = {
        name: {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
        }
        for name, function in functions.items()
    }
    found = {
        name
        for name, function in functions.items()
        if any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or any(call.startswith("assert") or call in {"raises", "warns", "fail"} for call in calls[name])
    }
    while more := {name for name in functions if calls[name] & found} - found:
        found |= more
    return found


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_asserts(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_"}
    assert tests - asserting_functions(tree) == set()
