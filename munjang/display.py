"""Show records in a notebook: one table with its own style that reads well in light and dark."""

from collections.abc import Iterable, Sequence
from html import escape

MAX_ROWS = 30  # of a table in a notebook; the rest is counted
MAX_CHARACTERS = 160  # of a text in a cell
STYLE = "text-align:left;vertical-align:top;padding:0.25em 0.8em 0.25em 0;border-bottom:1px solid #8884"


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """Return an HTML table with a title; long texts and many rows are cut, and say so.

    >>> "2 hits" in table("2 hits", ["score", "text"], [[0.9, "a"], [0.8, "b"]])
    True
    """
    given = list(rows)
    names = "".join(f'<th style="{STYLE}">{escape(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in given[:MAX_ROWS])
    rest = f"and {len(given) - MAX_ROWS:,} more" if len(given) > MAX_ROWS else ""
    notes = "".join(f'<div style="opacity:0.7">{escape(each)}</div>' for each in (rest, note) if each)
    head_row = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    return (
        f'<div style="max-width:60em"><div style="font-weight:600">{escape(title)}</div>'
        f'<table style="border-collapse:collapse">{head_row}<tbody>{lines}</tbody></table>{notes}</div>'
    )


def short(text: object, limit: int = MAX_CHARACTERS) -> str:
    """Return a text on one line, cut with an ellipsis.

    >>> short("a\\n  b" + "c" * 200, 8)
    'a bcccc…'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _cell(value: object) -> str:
    is_number = isinstance(value, float)
    words = f"{value:.3f}" if is_number else short(value)
    align = ";font-variant-numeric:tabular-nums" if is_number else ""
    return f'<td style="{STYLE}{align}">{escape(words)}</td>'
