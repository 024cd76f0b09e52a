"""The table of the server's limits, from their dataclasses and the comments beside their fields."""

import re
from pathlib import Path

SOURCE = "munjang/server/limits.py"
LIMIT = re.compile(r"    (\w+): (?:int|float) = ([\d_.]+)(?:  # (.+))?")


def table(root: Path, document: str) -> str:
    """Return all limits with their defaults, by the class that holds them."""
    lines = ["| limit | default | |", "|---|---|---|"]
    for line in (root / SOURCE).read_text(encoding="utf-8").splitlines():
        if found := LIMIT.fullmatch(line):
            name, value, meaning = found.groups()
            shown = f"{float(value):,g}" if float(value) < 1e6 else f"{int(value):,}"
            lines.append(f"| `{name}` | {shown} | {meaning or ''} |")
    return "\n".join(lines)
