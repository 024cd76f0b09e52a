"""The map of folders, from the first line of each one's docstring, in the order of imports that a test holds."""

import ast
from pathlib import Path

from docs.generate.part import Stale
from tests.test_architecture import ORDER

# Folders without a docstring. Those of the package have to be here or have an __init__.py.
PLAIN = {
    "munjang/models": "Weights of the bundled models, with card and notice",
    "munjang/server/page": "The page in the browser: HTML, styles and scripts without a build step",
    "attack": "Attacks on the whole system with counts and a verdict: faults, fuzz, load",
    "benchmarks": "Measurements of speed and memory; results/ has the records, peers/ the libraries compared with",
    "docs": "Documents; generate/ writes the parts that come from code and records",
    "examples": "Runnable programs; demo/ and books/ are larger ones",
    "recipes": "How the bundled models are made from data",
    "tests": "Tests, with the same paths as the package; contracts/ covers every entry of a table",
}
WIDTH = 19


def purpose(path: Path) -> str:
    """Return the first line of a module's docstring, without what follows four spaces (a legend of shapes)."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = docstring.partition("\n")[0].split("    ")[0].removesuffix(".")
    if not first:
        raise Stale(f"{path} has no docstring: say in one line what it is for")
    return first


def listing(root: Path, document: str) -> str:
    """Return the map in a code block, and the order of imports; CONTRIBUTING shows folders in folders too."""
    check(root)
    lines = ["```", "munjang/"]
    for unit in ORDER.replace(" > ", ", ").split(", "):
        folder = root / "munjang" / unit
        label, source = unit_of(root, unit)
        lines.append(f"  {label + ' ':{WIDTH}}{purpose(source)}")
        if document == "CONTRIBUTING.md" and folder.is_dir():
            inner = [each for each in sorted(folder.iterdir()) if said(root, each) is not None]
            lines += [f"    {each.name + '/':{WIDTH - 2}}{said(root, each)}" for each in inner]
    lines.append(f"  {'models/':{WIDTH}}{PLAIN['munjang/models']}")
    lines += [f"{name + '/':{WIDTH + 2}}{what}" for name, what in PLAIN.items() if "/" not in name]
    return "\n".join([*lines, "```", "", f"Imports point down: `{ORDER}`. `tests/test_architecture.py` checks it."])


def unit_of(root: Path, unit: str) -> tuple[str, Path]:
    """Return how the map calls a folder or file of the package, and where its docstring is."""
    folder, file = root / "munjang" / unit, root / "munjang" / f"{unit}.py"
    if not folder.is_dir() and not file.is_file():
        raise Stale(f"ORDER of tests/test_architecture.py names {unit}, which is not in munjang/")
    return (f"{unit}/", folder / "__init__.py") if folder.is_dir() else (file.name, file)


def said(root: Path, folder: Path) -> str | None:
    """Return what a folder is for; None for a file and for what Python leaves behind."""
    name = str(folder.relative_to(root))
    if (folder / "__init__.py").is_file():
        return purpose(folder / "__init__.py")
    return PLAIN.get(name)


def check(root: Path) -> None:
    """Every folder of the package is on the map, and the map has no others."""
    for name in PLAIN:
        if not (root / name).is_dir():
            raise Stale(f"docs/generate/folders.py tells of {name}, which is not there")
    units = set(ORDER.replace(" > ", ", ").split(", "))
    for folder in sorted(each for each in (root / "munjang").glob("**/") if each != root / "munjang"):
        parts = folder.relative_to(root / "munjang").parts
        is_inside_plain = any(folder.is_relative_to(root / name) for name in PLAIN)
        if "__pycache__" in parts or not any(folder.iterdir()) or is_inside_plain:
            continue
        if said(root, folder) is None:
            raise Stale(f"{folder.relative_to(root)} is not on the map: give it an __init__.py with a docstring")
        if parts[0] not in units:
            raise Stale(f"munjang/{parts[0]} is not in ORDER of tests/test_architecture.py")
