"""Synonyms of a user's file, which widen a search for words.

A line of the file is a group, "자동차, 차량, 승용차": each finds the others; or "AI => 인공지능": the left side also
finds the right one, not the other way round. Lines that begin with # are comments.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from munjang.errors import InputError
from munjang.text.terms import words_of

Phrase = tuple[str, ...]  # the words of a term


@dataclass(frozen=True)
class Synonyms:
    """Phrases, and what each of them also finds.

    >>> Synonyms.parse(["car, motor vehicle"]).widened(["old", "car"])
    ['motor', 'vehicle']
    """

    also: dict[Phrase, list[Phrase]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Synonyms":
        """Read a file."""
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The synonyms {path} can't be read: {error}.") from None
        return cls.parse(lines, str(path))

    @classmethod
    def parse(cls, lines: Iterable[str], name: str = "synonyms") -> "Synonyms":
        """Read lines."""
        also: dict[Phrase, list[Phrase]] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            left, arrow, right = line.partition("=>")
            sources = _phrases(left)
            targets = _phrases(right) if arrow else sources
            if not sources or not targets or (not arrow and len(sources) < 2):
                raise InputError(
                    f"{name}, line {number}: expected 'one, another' or 'one => another', not {line!r:.60}."
                )
            for source in sources:
                also.setdefault(source, []).extend(target for target in targets if target != source)
        return cls(also)

    def widened(self, words: Sequence[str]) -> list[str]:
        """Return the words that a query's own words also stand for."""
        found: dict[str, None] = {}
        longest = max(map(len, self.also), default=0)
        for start in range(len(words)):
            for end in range(start + 1, min(start + longest, len(words)) + 1):
                for phrase in self.also.get(tuple(words[start:end]), ()):
                    found |= dict.fromkeys(phrase)
        return [word for word in found if word not in words]


def _phrases(text: str) -> list[Phrase]:
    phrases = (tuple(words_of(part)) for part in text.split(","))
    return [phrase for phrase in phrases if phrase]
