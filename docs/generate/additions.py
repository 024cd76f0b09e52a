"""The table of what a new thing takes: a file and a table line. Both are looked up, so that neither can be wrong."""

import ast
from pathlib import Path

from docs.generate.part import Stale

# Thing, file to write (with a placeholder, or an existing one), and the tables that get a line: file, name.
ADDITIONS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("pooling", "munjang/nn/pooling.py", (("munjang/nn/pooling.py", "POOLERS"),)),
    ("objective", "munjang/objectives/<name>.py", (("munjang/objectives/__init__.py", "OBJECTIVES"),)),
    ("family (architecture)", "munjang/nn/families/<name>.py", (("munjang/nn/families/__init__.py", "FAMILIES"),)),
    ("store", "munjang/stores/<name>/", (("munjang/stores/__init__.py", "STORES"),)),
    ("kind of evaluation", "munjang/evaluation/kinds/<name>.py", (("munjang/evaluation/kinds/__init__.py", "KINDS"),)),
    ("task", "munjang/tasks/<name>/", ()),
    ("verb", "munjang/cli/<verb>.py", (("munjang/cli/__init__.py", "VERBS"),)),
    ("route", "munjang/server/routes/<api>.py", (("munjang/server/routes/__init__.py", "APIS"),)),
    (
        "layout (on-disk format of a model)",
        "munjang/checkpoint/layouts.py",
        (("munjang/checkpoint/layouts.py", "BI_LAYOUTS"), ("munjang/checkpoint/layouts.py", "CROSS_LAYOUTS")),
    ),
    (
        "reader (file format of data)",
        "munjang/data/tables.py",
        (("munjang/data/tables.py", "READERS"), ("munjang/data/tables.py", "SUFFIXES")),
    ),
    ("part of these documents", "docs/generate/<name>.py", (("docs/generate/__init__.py", "PARTS"),)),
)


def table(root: Path, document: str) -> str:
    """Return the table; a file or a name that isn't there is an error."""
    lines = ["| what | file | line in |", "|---|---|---|"]
    for what, file, tables in ADDITIONS:
        pattern = file.replace("<name>", "*").replace("<verb>", "*").replace("<api>", "*").rstrip("/")
        if not any(root.glob(pattern)):
            raise Stale(f"adding a {what}: there is no {file}")
        for path, name in tables:
            if not (root / path).is_file() or name not in _names(root / path):
                raise Stale(f"adding a {what}: there is no {name} in {path}")
        shown = file if "<" in file else f"a function in {file}"
        names = {path: [f"`{name}`" for other, name in tables if other == path] for path, _ in tables}
        into = [f"{' and '.join(found)} in `{path}`" for path, found in names.items()]
        lines.append(f"| {what} | {shown.replace(file, f'`{file}`')} | {', '.join(into) or 'none'} |")
    return "\n".join(lines)


def _names(path: Path) -> set[str]:
    """Return the names that a module assigns at its top level."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names
