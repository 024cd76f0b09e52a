"""The map holds: imports point down, folders say what they are for, importing costs nothing that is optional."""

import ast
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import munjang

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "munjang"
ORDER = (
    "cli > server, scale, compat, paper > tasks > training > evaluation > index"
    " > bi_encoder, cross_encoder, multi_vector_encoder, sparse_encoder > model"
    " > stores, engine, objectives, data > checkpoint > nn > text > arguments, pages, vectors"
    " > display, errors, lazy, options, progress, types"
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


@cache
def imported_modules(module: str) -> list[str]:
    """Every module of ours that this one imports: at the top, inside functions and for type checkers alike."""
    return list(_imported_modules(module))


def _imported_modules(module: str) -> Iterator[str]:
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


BESIDE = {("types", "display"), ("types", "errors")}  # records raise errors and show themselves
INNER = [module for module in FILES if module != "munjang"]


def wrong_imports(module: str) -> Iterator[str]:
    """Each import of a module that doesn't point down, in words."""
    if module == "munjang.__main__":
        yield from (f"{module} imports {name}" for name in imported_modules(module) if unit(name) != "cli")
        return
    if unit(module) not in DEPTH:
        yield f"{module} is not on the map; put it under one of {', '.join(DEPTH)}"
        return
    for name in imported_modules(module):
        if name == "munjang":  # __version__
            continue
        is_outside = unit(name) != unit(module) and (unit(module), unit(name)) not in BESIDE
        if is_outside and DEPTH[unit(name)] <= DEPTH[unit(module)]:
            yield f"{module} imports {name}"


def test_imports_point_down() -> None:
    wrong = [line for module in INNER for line in wrong_imports(module)]
    assert wrong == [], f"the order is {ORDER}"


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


IMPORTS = [
    "import munjang",
    *(f"from munjang import {name}" for name in sorted(munjang.PUBLIC)),
    *("import munjang.objectives", "import munjang.compat"),
]


def test_importing_needs_nothing_optional() -> None:
    """In one process, which says after each statement what it has loaded so far."""
    code = (
        "import json, sys\n"
        f"for statement in {IMPORTS}:\n"
        "    exec(statement)\n"
        "    print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = dict(zip(IMPORTS, map(json.loads, done.stdout.splitlines()), strict=True))
    packages = {statement: {name.split(".")[0] for name in names} for statement, names in loaded.items()}
    assert {statement: OPTIONAL & names for statement, names in packages.items() if OPTIONAL & names} == {}
    assert {"torch", "numpy", "tokenizers"} & packages["import munjang"] == set()
    before_compat = loaded["import munjang.objectives"]
    assert [name for name in before_compat if name.startswith("munjang.compat")] == []  # nothing else imports it


@pytest.mark.slow  # ten processes that import torch: 15 s
def test_importing_costs_little_more_than_torch() -> None:
    """At most 20 % (7 to 11 % measured) over what is needed anyway, in processor time: others' work counts less."""
    needed, ours = "import torch, tokenizers, safetensors", "import munjang; munjang.BiEncoder"
    times: dict[str, list[float]] = {needed: [], ours: []}
    for _ in range(5):
        for statement, taken in times.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times[ours]) <= 1.2 * min(times[needed]), times


def test_all_is_what_is_exported() -> None:
    assert sorted(munjang.__all__) == sorted([*munjang.PUBLIC, "__version__"])
    assert dir(munjang) == sorted(munjang.PUBLIC)
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


def test_every_test_asserts() -> None:
    without = {}
    for path in TEST_FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_"}
        if missing := tests - asserting_functions(tree):
            without[str(path.relative_to(ROOT))] = missing
    assert without == {}
