"""HTML elements that escape whatever is put into them, and phrases that the page shows in either language."""

import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from munjang.pages.words import WORDS

MAX_CHARACTERS = 300  # shown of one text
VOID = ("input",)  # elements of HTML that have no end
# Control characters that HTML and XML forbid, lone surrogates, and marks that reverse the direction of a whole page
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Html(str):
    """Markup: inserted as it is, where any other text is escaped."""


class Phrase(NamedTuple):
    """An entry of WORDS and the values of its placeholders."""

    key: str
    values: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return WORDS[self.key][0].format(**dict(self.values))


def say(key: str, **values: object) -> Phrase:
    """Name a phrase of WORDS. The page shows it in the reader's language.

    >>> str(say("first_of", shown=200, total=1234))
    'The first 200 of 1,234.'
    """
    return Phrase(key, tuple((name, number(value)) for name, value in values.items()))


def clean(value: object) -> str:
    """Replace the characters that would break a page."""
    return UNPRINTABLE.sub("\ufffd", str(value))


def shorten(value: object, max_characters: int = MAX_CHARACTERS) -> str:
    """Put a text on one line and cut it to `max_characters`."""
    text = " ".join(clean(value).split())
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"


def number(value: object) -> str:
    """Format a number with its significant digits; return other values as text.

    >>> number(0.81234567), number(2e-05), number(12345.678), number(12000)
    ('0.8123', '2e-5', '12,345.7', '12,000')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return clean(value)
    size = abs(value)
    if isinstance(value, int) or size == 0:
        return f"{value:,.0f}"
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "∞", "-inf": "-∞"}[str(value)]
    if not 1e-3 <= size < 1e7:
        return short_exponent(value, 3)
    return f"{value:.4f}" if size < 100 else f"{value:,.1f}"


def short_exponent(value: float, digits: int) -> str:
    """Format a number with at most `digits` digits, an exponent as e-5.

    >>> short_exponent(1.5e-05, 3)
    '1.5e-5'
    """
    return re.sub(r"e([+-])0*", lambda match: "e" + match[1].strip("+"), f"{value:.{digits}g}")


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Build an element. Text and attribute values are escaped; None and False leave an attribute out.

    >>> element("td", "a < b", class_="text")
    '<td class="text">a &lt; b</td>'
    >>> element("th", say("rows"), scope="col")
    '<th scope="col" data-say="rows">rows</th>'
    """
    values = dict(_attributes(attributes))
    if len(content) == 1 and isinstance(content[0], Phrase):
        values |= _said(content[0], "data-say")
        content = (str(content[0]),)
    opening = "".join(f' {name}="{escape(clean(value))}"' for name, value in values.items())
    closing = "" if tag in VOID else f"</{tag}>"
    return Html(f"<{tag}{opening}>{''.join(map(inline, content))}{closing}")


def inline(content: object) -> Html:
    """Escape a text, wrap a phrase in a span, join a list; leave markup and None alone."""
    if isinstance(content, Html):
        return content
    if isinstance(content, Phrase):
        return element("span", content)
    if isinstance(content, str):
        return Html(escape(clean(content)))
    if isinstance(content, Iterable):
        return Html("".join(map(inline, content)))
    return Html("" if content is None else escape(number(content)))


def _attributes(given: dict[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in given.items():
        name = key.rstrip("_").replace("_", "-")  # class_ and aria_label
        if isinstance(value, Phrase):
            yield name, str(value)
            yield from _said(value, f"data-say-{name.removeprefix('aria-')}").items()
        elif value is not None and value is not False:
            yield name, "" if value is True else str(value)


def _said(phrase: Phrase, attribute: str) -> dict[str, str]:
    return {attribute: phrase.key} | {f"data-{name}": value for name, value in phrase.values}
