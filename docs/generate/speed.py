"""The table of speed on a CPU, from the record of `python -m benchmarks.cpu --record`."""

import os
from pathlib import Path

from benchmarks import report

FEW = ("sentence-transformers", "munjang float32", "munjang int8", "ctranslate2 int8", "onnxruntime")
CHART = "(benchmarks/results/"


def table(root: Path, document: str) -> str:
    """Return the whole table in the document's language."""
    there = os.path.relpath("benchmarks/results", Path(document).parent)
    return _whole(root, document).replace(CHART, f"({there}/")


def few(root: Path, document: str) -> str:
    """Return the rows of the encoders in FEW, without cosines, and the note below."""
    head, rule, *rest = _whole(root, document).splitlines()
    rows = [line for line in rest if line.split("|")[1:2] and line.split("|")[1].strip() in FEW]
    note = next(line for line in rest if line and not line.startswith("|"))
    cut = ["|".join(line.split("|")[:-3]) + "|" for line in (head, rule, *rows)]  # times and cosines: on the page
    return "\n".join([*cut, "", note.split(":")[0] + "."])


def _whole(root: Path, document: str) -> str:
    is_korean = document.endswith(".ko.md")
    return report.table(report.read(root), report.WORDS["README.ko.md" if is_korean else "README.md"])
