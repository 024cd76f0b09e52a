"""The table of stores, from the rows of STORES."""

from pathlib import Path

from munjang.stores import STORES


def table(root: Path, document: str) -> str:
    """Return all engines with the locations that choose them and the extras that install them."""
    lines = ["| location | engine | install |", "|---|---|---|"]
    for title, entry in STORES.items():
        locations = ", ".join(each if " " in each else f"`{each}`" for each in entry.locations.split(", "))
        install = f"`munjang[{entry.extra}]`" if entry.extra else "nothing"
        lines.append(f"| {locations} | {title} | {install} |")
    return "\n".join(lines)
