"""Part: some text of an office file, with the page it is on and the heading that it stands under."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from munjang.errors import MunjangError

HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*\Z")


@dataclass(frozen=True)
class Part:
    """A part of a file; page and heading only where the format has them."""

    text: str
    page: int | None = None  # from 1; of a presentation, the slide
    heading: str | None = None


class Unreadable(MunjangError):
    """A file holds no text that can be read; the message says why."""


def by_headings(markdown: str, page: int | None = None) -> Iterator[Part]:
    """Cut Markdown before each of its headings; lines that begin with # inside a fence of code are none.

    >>> [(part.heading, part.text) for part in by_headings("intro\\n# One\\nfirst\\n## Two\\nsecond")]
    [(None, 'intro'), ('One', '# One\\nfirst'), ('Two', '## Two\\nsecond')]
    """
    heading: str | None = None
    lines: list[str] = []
    is_code = False
    for line in markdown.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else HEADING.match(line)
        if match:
            yield from _part(lines, page, heading)
            heading, lines = match[2].strip("*_ "), []
        lines.append(line)
    yield from _part(lines, page, heading)


def _part(lines: list[str], page: int | None, heading: str | None) -> Iterator[Part]:
    text = "\n".join(lines).strip()
    if text:
        yield Part(text, page, heading)
