"""The table of published datasets whose files are read as they are, from the shapes themselves."""

from pathlib import Path

from munjang.data.published import PUBLISHED


def table(root: Path, document: str) -> str:
    """Return all shapes with the names of their files."""
    rows = [f"| {shape.title} | {shape.files} |" for shape in PUBLISHED.values()]
    return "\n".join(["| dataset | files, for example |", "|---|---|", *rows])
