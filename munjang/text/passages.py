"""Passages: long documents cut into overlapping parts that fit, at the ends of sentences wherever possible."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from munjang.errors import InputError
from munjang.text.graphemes import boundaries, joins
from munjang.text.sentences import is_heading, lines, sentence_places
from munjang.types import Ints

Count: TypeAlias = Callable[[Sequence[str]], Sequence[int] | Ints]
Place: TypeAlias = tuple[int, int]  # from one character up to another
WORD = re.compile(r"\S+")
MAX_CHARACTERS_PER_UNIT = 16  # of `count`: some tokenizers give up on a long word and call a book one token


def characters(texts: Sequence[str]) -> list[int]:
    """Return sizes in characters."""
    return [len(text) for text in texts]


def words(text: str, start: int, end: int) -> list[Place]:
    """Return where the words of a part of a text stand."""
    return [match.span() for match in WORD.finditer(text, start, end)]


FINER = (lines, words, boundaries)  # how a sentence that is too long is cut: each only where the one before won't do


@dataclass(frozen=True)
class Passage:
    """A part of a document: `text` is document[start:end]."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class PassageCutter:
    """Cuts documents into passages of at most `max_size`, each beginning with the last sentences of the one before.

    `count` gives the sizes of a list of texts, by default in characters; in tokens it is
    `PassageCutter(256, overlap=32, count=lambda texts: tokenizer.bodies(texts)[1])`. As many whole sentences are
    repeated as fit into `overlap` and leave room for something new. A sentence above `max_size` is cut at its lines,
    else between words, else between what a reader takes for characters; those are never cut, whatever they count. No
    passage ends with a heading that something follows.

    >>> [passage.text for passage in PassageCutter(18, overlap=9).cut("하나를 말했다. 둘을 말했다. 셋을 말했다.")]
    ['하나를 말했다. 둘을 말했다.', '둘을 말했다. 셋을 말했다.']
    """

    max_size: int
    overlap: int = 0
    count: Count = characters

    def __post_init__(self) -> None:
        if self.max_size < 1:
            raise InputError(f"A passage must have room for something: max_size is {self.max_size}, at least 1.")
        if not 0 <= self.overlap <= self.max_size // 2:  # more, and the passages outgrow the document many times
            raise InputError(f"overlap is {self.overlap}; with passages of {self.max_size}, 0 to {self.max_size // 2}.")

    def cut(self, text: str) -> list[Passage]:
        """Return the passages of a text in order, with their places in it. One that fits is one passage, as it is.

        All but white space is in some passage; a text of nothing else that does not fit gives one empty passage.
        """
        if self._sizes(text, [(0, len(text))])[0] <= self.max_size:
            return [Passage(text, 0, len(text))]
        units = self._units(text)
        if not units:
            return [Passage("", 0, 0)]
        places = self._fitting(text, units, self._runs(text, units))
        return [Passage(text[start:end], start, end) for start, end in places]

    def _units(self, text: str) -> list[Place]:
        """Return the units that are put together: sentences, and parts of those that are too long."""
        units = _with_marks(text, sentence_places(text))
        for cut in FINER:
            fits = [size <= self.max_size for size in self._sizes(text, units)]
            finer = [[unit] if whole else cut(text, *unit) for unit, whole in zip(units, fits, strict=True)]
            units = _with_marks(text, [unit for parts in finer for unit in parts])
        return units

    def _sizes(self, text: str, places: list[Place]) -> list[int]:
        """Return the sizes of parts of a text; equal ones (graphemes, gaps) are counted once."""
        pieces = [text[start:end] for start, end in places]
        distinct = list(dict.fromkeys(pieces))
        counts = self.count(distinct) if distinct else []
        sizes = [max(int(n), len(piece) // MAX_CHARACTERS_PER_UNIT) for piece, n in zip(distinct, counts, strict=True)]
        size_of = dict(zip(distinct, sizes, strict=True))
        return [size_of[piece] for piece in pieces]

    def _runs(self, text: str, units: list[Place]) -> list[Place]:
        """Return runs of units, from one up to another, that fit if sizes add up."""
        sizes = self._sizes(text, units)
        gaps = self._sizes(text, [(before, after) for (_, before), (after, _) in pairwise(units)])
        begins, ends, at = [], [], 0  # where each unit stands on an axis in the unit of `count`
        for size, gap in zip(sizes, [*gaps, 0], strict=True):
            begins.append(at)
            ends.append(at + size)
            at += size + gap
        runs: list[Place] = []
        first = stop = 0
        while stop < len(units):
            new = stop
            while first < new and ends[new] - begins[first] > self.max_size:
                first += 1
            while stop < len(units) and (stop == new or ends[stop] - begins[first] <= self.max_size):
                stop += 1
            if stop < len(units):
                ends_of_text = (at for at in range(stop, new, -1) if not is_heading(text, units[at - 1][0]))
                stop = next(ends_of_text, stop)  # a run of nothing but headings stays
            runs.append((first, stop))
            first = stop
            while first - 1 > runs[-1][0] and ends[stop - 1] - begins[first - 1] <= self.overlap:
                first -= 1
        return runs

    def _fitting(self, text: str, units: list[Place], runs: list[Place]) -> list[Place]:
        """Return the places of the runs; one whose size is more than the sum of its parts is halved until it fits."""
        while True:
            places = [(units[first][0], units[stop - 1][1]) for first, stop in runs]
            is_long = [size > self.max_size for size in self._sizes(text, places)]
            if not any(long and stop - first > 1 for long, (first, stop) in zip(is_long, runs, strict=True)):
                return places
            halved: list[Place] = []
            for long, (first, stop) in zip(is_long, runs, strict=True):
                middle = (first + stop) // 2
                parts = [(first, middle), (middle, stop)] if long and stop - first > 1 else [(first, stop)]
                for part in parts:
                    while halved and halved[-1][0] >= part[0] and halved[-1][1] <= part[1]:
                        halved.pop()  # the overlap of a halved run may lie wholly within its neighbour
                    if not halved or part[1] > halved[-1][1]:
                        halved.append(part)
            runs = halved


def _with_marks(text: str, places: list[Place]) -> list[Place]:
    """Take the space before a mark at the start of a unit along: the mark belongs to it."""
    return [(start - (start > 0 and joins(text[start - 1], text[start])), end) for start, end in places]
