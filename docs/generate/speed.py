"""The table of speed on a CPU, from the record of `python -m benchmarks.cpu --record`."""

from pathlib import Path

from benchmarks import report


def table(root: Path, document: str) -> str:
    """Return the table in the document's language."""
    return report.table(report.read(root), report.WORDS[document])
