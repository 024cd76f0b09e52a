"""Texts cut into sentences, Korean and English, without a model."""

import re
from collections.abc import Iterator

from munjang.text.graphemes import joins

# After a mark that ends a sentence, with closing quotes or brackets, before white space; or at a line's end. A single
# capital ("J. Smith") and common abbreviations end nothing.
END = re.compile(r"(?<=[.!?。！？…])([\"'”’)\]」』]*)\s+|\n+")
ABBREVIATION = re.compile(r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|cf|No|Fig|al))\.$")
MAX_ABBREVIATION_CHARACTERS = 12  # with room before it: looking no farther back keeps a text full of them linear

# Full-width marks need no white space behind them, nor does a mark between two Korean words written together.
MARK = re.compile(
    r"(?<=[.!?…])[\"'”’)\]」』]*(?=\s)|(?<=[。！？])[\"'”’）\)\]」』]*|(?<=[가-힣][.!?])[\"'”’)\]」』]*(?=[\"'“‘(「『]?[가-힣])"
)
NUMBERING = re.compile(r"\s*(?:\d{1,3}|[가나다라마바사아자차카타파하]|[ivxIVX]{1,5})\.$")  # "1. First": no sentence yet
LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
HEADING = re.compile(r"\s{0,3}#{1,6}\s")
ITEM = re.compile(r"\s*(?:[-*+•·▪‣○●■]\s|(?:\d{1,3}|[a-zA-Z가-하])[.)]\s|\||>)")  # lists, table rows, quotes


def split(text: str) -> list[str]:
    """Return the sentences of a text, without white space around them.

    >>> split('Dr. Kim came. "Why?" 그는 물었다. 비가 왔다.')
    ['Dr. Kim came.', '"Why?"', '그는 물었다.', '비가 왔다.']
    """
    sentences, start = [], 0
    for match in END.finditer(text):
        end = match.end(1) if match[1] is not None else match.start()
        if "\n" not in match[0] and _abbreviates(text, start, end):
            continue
        sentences.append(text[start:end].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def sentence_places(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a document stand. One may go on over line ends, but not over blank lines.

    Headings, list items, quotes and rows of tables begin something new, and nothing goes on after a heading.

    >>> text = "# Title\\nOne goes\\non. Two.\\n- item"
    >>> [text[start:end] for start, end in sentence_places(text)]
    ['# Title', 'One goes\\non.', 'Two.', '- item']
    """
    places = []
    for start, end in _blocks(text):
        begin = start
        for match in MARK.finditer(text, start, end):
            at = match.end()
            if at == end or joins(text[at - 1], text[at]):
                continue
            if _abbreviates(text, begin, at) or NUMBERING.match(text, begin, at):
                continue
            places.append((begin, at))
            begin = at
        places.append((begin, end))
    return stripped(text, places)


def is_heading(text: str, start: int) -> bool:
    """Tell whether a heading of Markdown starts here."""
    return HEADING.match(text, start) is not None


def headings_above(text: str, place: int) -> list[str]:
    """Return the headings of Markdown that a place stands under, the outermost first.

    >>> headings_above("# A\\n## B\\nb\\n## C\\nc", 16)
    ['A', 'C']
    """
    open_headings: dict[int, str] = {}
    for match in LINE.finditer(text, 0, place):
        mark = HEADING.match(match[0])
        if mark:
            level = mark[0].count("#")
            open_headings = {depth: title for depth, title in open_headings.items() if depth < level}
            open_headings[level] = match[0][mark.end() :].strip().rstrip("#").strip()
    return [title for title in open_headings.values() if title]


def lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the lines of a part of a text, without the white space around them."""
    return stripped(text, [match.span() for match in LINE.finditer(text, start, end)])


def stripped(text: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Take white space off both ends of places; those that hold nothing else are left out."""
    kept = []
    for start, end in places:
        piece = text[start:end]
        if bare := piece.strip():
            begin = start + len(piece) - len(piece.lstrip())
            kept.append((begin, begin + len(bare)))
    return kept


def _abbreviates(text: str, start: int, end: int) -> bool:
    return ABBREVIATION.search(text[max(start, end - MAX_ABBREVIATION_CHARACTERS) : end]) is not None


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Put lines together as far as a sentence may go on."""
    start = end = None
    for match in LINE.finditer(text):
        begins = HEADING.match(match[0]) or ITEM.match(match[0])
        goes_on = end is not None and not begins and match[0].strip() and _is_one_break(text[end : match.start()])
        if start is not None and end is not None and not goes_on:
            yield start, end
            start = None
        if not match[0].strip():
            end = None
            continue
        start = match.start() if start is None else start
        end = None if HEADING.match(match[0]) else match.end()
        if end is None:
            yield start, match.end()
            start = None
    if start is not None and end is not None:
        yield start, end


def _is_one_break(between: str) -> bool:
    return len(between) == 1 or between == "\r\n"
