"""Parts of a page: sections, facts, tables, heat maps."""

import re
from collections.abc import Iterable, Mapping, Sequence

from munjang.pages.html import Html, Phrase, element, say, shorten

MIN_LONG_TEXT = 24  # characters: a column with such a text breaks its lines
FIGURE = re.compile(r"-?[\d,.]+(?:e-?\d+)?|–|undefined|")


def section(title: str | Phrase, *content: object, note: object = None) -> Html:
    """Put a heading and an optional note above some content."""
    return element("section", element("h2", title), note and element("p", note, class_="hint"), *content)


def facts(values: Mapping[Phrase, object]) -> Html:
    """Show a few figures as cards: name and value."""
    cards = (element("div", element("dt", name), element("dd", value)) for name, value in values.items())
    return element("dl", *cards, class_="facts")


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> Html:
    """Lay out rows below their heads; columns of numbers are aligned to the right, long texts are shortened."""
    rows = [list(row) for row in rows]
    kinds = [_kind([row[column] for row in rows]) for column in range(len(heads))]
    columns = [
        element("th", head, scope="col", class_="number" if kind == "number" else None)
        for head, kind in zip(heads, kinds, strict=True)
    ]
    body = (element("tr", *map(_cell, row, kinds)) for row in rows)
    return element(
        "div",
        element("table", element("thead", element("tr", *columns)), element("tbody", *body)),
        class_="card scroll",
        tabindex=0,  # the keyboard can scroll it
    )


def heat(names: Sequence[str], counts: Sequence[Sequence[int]], tips: Sequence[Sequence[str]]) -> Html:
    """Show a square table of counts. The darker a cell, the larger its share of the row; mistakes are red."""
    head = (element("th", element("span", name), scope="col") for name in names)
    lines = []
    for row, (name, values) in enumerate(zip(names, counts, strict=True)):
        total = max(sum(values), 1)
        cells = (
            element(
                "td",
                count or "",
                class_=_tone(count / total, column == row),
                title=tips[row][column] if count else None,
                style=f"--strength: {100 * count / total:.0f}%" if count else None,
            )
            for column, count in enumerate(values)
        )
        lines.append(element("tr", element("th", name, scope="row"), *cells))
    grid = element("table", element("thead", element("tr", element("td"), *head)), element("tbody", *lines))
    return element("div", grid, class_="card scroll heat matrix", tabindex=0)


def chips(words: Iterable[str]) -> Html:
    """Show words as a row of chips."""
    return element("span", *(element("span", word, class_="chip", dir="auto") for word in words), class_="chips")


def first_of(num_shown: int, total: int) -> Phrase | None:
    """Say that only the first rows are shown; None where all are."""
    return say("first_of", shown=num_shown, total=total) if num_shown < total else None


def _kind(cells: Sequence[object]) -> str | None:
    if cells and all(isinstance(cell, (int, float, str)) and FIGURE.fullmatch(str(cell)) for cell in cells):
        return "number"
    return "text" if any(len(str(cell)) >= MIN_LONG_TEXT for cell in cells if not isinstance(cell, Html)) else None


def _cell(cell: object, kind: str | None) -> Html:
    shown = cell if isinstance(cell, (Html, Phrase)) or not isinstance(cell, str) else shorten(cell)
    return element("td", shown, class_=kind, dir="auto" if kind == "text" else None)


def _tone(share: float, is_diagonal: bool) -> str | None:
    """Name the text colour that is legible on a cell, and mark mistakes."""
    tone = "strong" if share > 0.6 else "middling" if share > 0.35 else ""
    return f"{tone} {'' if is_diagonal else 'wrong'}".strip() or None
