"""Highlights: which words of a query a text has, and where.

A Korean morpheme is looked for inside words, so that texts need not be cut by the analyser; English words by stems.
"""

from collections.abc import Sequence

from munjang.text import korean
from munjang.text.english import STOP_WORDS, stem
from munjang.text.terms import WORD, normal, parts_of


class Highlighter:
    """The words of a query that carry meaning, and `also` other words that stand for them.

    >>> text = "Stalled wings: 서울에서"
    >>> [text[start:end] for start, end in Highlighter("stalling in 서울의 날개").places(text)]
    ['Stalled', '서울']
    """

    def __init__(self, query: str, also: Sequence[str] = ()) -> None:
        words = [word for word in WORD.findall(normal(query)) if word not in STOP_WORDS]
        self.parts = _meaningful(words)
        self.also = _meaningful(also) - self.parts

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where the query's words stand, in order; of a Korean word the morpheme without what follows it."""
        places: list[tuple[int, int]] = []
        for found in WORD.finditer(text):
            word, start = normal(found[0]), found.start()
            if len(word) != len(found[0]):  # letters that are written as several characters
                places += [found.span()] if self._found(word) else []
                continue
            end = 0
            for part in sorted(self._found(word), key=lambda part: (word.find(part), -len(part))):
                begin = word.find(part)
                if begin >= end:
                    end = begin + len(part) if korean.has_hangul(word) else len(word)
                    places.append((start + begin, start + end))
        return places

    def coverage(self, text: str) -> float:
        """Return the part of the query's words that a text has, 0 to 1."""
        if not self.parts:
            return 0.0
        found = {part for word in set(WORD.findall(normal(text))) for part in self._found(word)}
        return len(found & self.parts) / len(self.parts)

    def _found(self, word: str) -> set[str]:
        wanted = self.parts | self.also
        if not korean.has_hangul(word):
            return {stem(word)} & wanted
        return {part for part in wanted if (word.startswith(part) if len(part) == 1 else part in word)}


def _meaningful(words: Sequence[str]) -> frozenset[str]:
    parts = (part for word in words for part in parts_of(word))
    return frozenset(stem(part) for part in parts if part not in korean.STOP_WORDS)
