"""The tree of errors, from the classes of the whole package."""

import ast
import re
from pathlib import Path

ROOT_CLASS = "MunjangError"
HOME = "munjang.errors"


def tree(root: Path, document: str) -> str:
    """Return every error under MunjangError, with its docstring and where it is if not in munjang.errors."""
    drawn = _draw(ROOT_CLASS, _classes(root), "", "")
    width = max(len(name) for name, _ in drawn) + 2
    return "\n".join(f"{name:{width}}{what}".rstrip() for name, what in drawn)


def fenced(root: Path, document: str) -> str:
    """Return the tree as a block of Markdown."""
    return f"```\n{tree(root, document)}\n```"


def _classes(root: Path) -> dict[str, tuple[list[str], str]]:
    """Return the bases and description of every class in the package; those of munjang.errors come first."""
    found = []
    for path in sorted((root / "munjang").rglob("*.py")):
        module, text = ".".join(path.relative_to(root).with_suffix("").parts), path.read_text(encoding="utf-8")
        if not re.search(r"^class \w+\(", text, re.MULTILINE):  # parsing is most of the time
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                bases = [each.id for each in node.bases if isinstance(each, ast.Name)]
                first = re.split(r"[.;](?:\s|$)", ast.get_docstring(node) or "")[0].replace("\n", " ")
                folder = ".".join(module.split(".")[:2])
                what = first if module == HOME else f"{first}; in {folder}"
                found.append((module != HOME, node.name, bases, what))
    return {name: (bases, what) for _, name, bases, what in sorted(found, key=lambda each: each[0])}  # stable


def _draw(
    name: str, classes: dict[str, tuple[list[str], str]], here: str, below: str, parent: str = "Exception"
) -> list[tuple[str, str]]:
    """Return the line of a class and those of its children, which are listed under their first base."""
    bases, what = classes[name]
    also = [base for base in bases if base != parent]
    lines = [(here + name, f"{what} (also {', '.join(also)})" if also else what)]
    children = [child for child, (parents, _) in classes.items() if parents and parents[0] == name]
    for child in children:
        is_last = child == children[-1]
        branch, under = ("└── ", "    ") if is_last else ("├── ", "│   ")
        lines += _draw(child, classes, below + branch, below + under, name)
    return lines
