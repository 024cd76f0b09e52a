"""The two shapes of what is generated: a block between two comments, and the figures of a sentence."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Stale(ValueError):
    """A document or a source is not as the generator needs it: says which, and what to do."""


@dataclass(frozen=True)
class Block:
    """Text between `<!-- name -->` and `<!-- end of name -->`, or between two other strings of the document."""

    name: str
    documents: tuple[str, ...]
    text: Callable[[Path, str], str]  # root of the repository, document -> Markdown
    start: str | None = None
    end: str | None = None

    def fill(self, root: Path, document: str, text: str) -> str:
        """Return the document's text with the block as it should be."""
        start = self.start or f"<!-- {self.name} -->\n\n"
        end = self.end or f"\n\n<!-- end of {self.name} -->"
        before, found_start, rest = text.partition(start)
        _, found_end, after = rest.partition(end)
        if not found_start or not found_end:
            raise Stale(f"no place for {self.name}: put back {start.strip()!r} and {end.strip()!r}")
        return before + start + self.text(root, document) + end + after


@dataclass(frozen=True)
class Fact:
    """Figures in one sentence: each group of the pattern is one of them."""

    name: str
    sentences: dict[str, str]  # document: pattern
    values: Callable[[Path], tuple[str, ...]]

    @property
    def documents(self) -> tuple[str, ...]:
        """Return where the figures are stated."""
        return tuple(self.sentences)

    def fill(self, root: Path, document: str, text: str) -> str:
        """Return the document's text with the figures as they should be."""
        found = list(re.finditer(self.sentences[document], text))
        if len(found) != 1:
            raise Stale(f"{self.name}: the sentence {self.sentences[document]!r} is there {len(found)} times, not once")
        values, match = self.values(root), found[0]
        if len(values) != match.re.groups:
            raise Stale(f"{self.name}: {len(values)} figures for a sentence with {match.re.groups}")
        for number in range(len(values), 0, -1):  # from the end: places before it stay
            text = text[: match.start(number)] + values[number - 1] + text[match.end(number) :]
        return text
