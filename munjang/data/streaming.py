"""Examples of data that is larger than memory: read block by block, and again for every pass.

stream = Stream("huge.jsonl.gz", block_rows=50_000)
stream.count()
for examples in stream.blocks(): ...
"""

import hashlib
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.data.labels import number_classes
from munjang.data.objects import is_read_once
from munjang.data.reading import Columns, Reader, Rows, overlaps
from munjang.data.scores import range_of, read_scores
from munjang.errors import InputError


@dataclass
class Facts:
    """What is known about the rows that were read so far."""

    num_read: int = 0
    num_rows: int = 0  # without those that are dropped
    classes: set[str] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)  # lowest and highest
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def see(self, rows: Rows) -> None:
        """Note how many rows there are, and the edges of the scores of pairs, before these are scaled."""
        self.num_read += len(rows.values)
        if len(rows.scores) == 1 and len(rows.texts) == 2:
            values = read_scores(rows.column(len(rows.texts) + len(rows.label)), {})
            values = values[np.isfinite(values)]
            if values.size:
                edges = [*self.scores, float(values.min()), float(values.max())]
                self.scores = [min(edges), max(edges)]

    def keep(self, examples: Examples) -> None:
        """Note what is left of a block."""
        self.num_rows += len(examples)
        self.classes.update(examples.label_names)
        self.digest.update(f"{examples.fingerprint} {examples.label_names}".encode("utf-8", "surrogatepass"))

    @property
    def fingerprint(self) -> str:
        """Hash the rows: a resumed run has to have the same ones."""
        return str(self.digest.hexdigest())


class Stream:
    """Rows of files, or of a function that yields them, of which one block is in memory at a time.

    `count` reads all rows once and checks them. Without it, classes and the range of scores are those of the first
    block, and another class or a score beyond them is an error when it comes.

    >>> stream = Stream(lambda: (("a", "b", number / 9) for number in range(10)), 4, target="scores")
    >>> stream.count().num_rows, [len(block) for block in stream.blocks()]
    (10, [4, 4, 2])
    """

    def __init__(
        self, source: Any, block_rows: int, held_out: Container[str] = (), format: str | None = None, **options: Any
    ) -> None:
        nothing: dict[str, Any] = {"texts": None, "label": None, "score": None, "target": None, "num_texts": (1, None)}
        self.reader = Reader.of(source, Columns(**nothing | options), format)
        self.block_rows, self.held_out = block_rows, held_out
        self.is_read_once, self.facts = is_read_once(source), Facts()
        self._begun: Iterator[Examples] | None = None

    @property
    def name(self) -> str:
        """Return what errors and reports call the source."""
        return self.reader.name

    def count(self, see: Callable[[int], None] = lambda num_rows: None) -> Facts:
        """Read and check all rows once; `see` is told of each block."""
        if self.is_read_once:
            raise InputError(
                f"{self.name} can be read only once, and rows are counted before training: give the function that "
                "makes them (rows, not rows()), or max_steps"
            )
        facts = Facts()
        for rows in self.reader.blocks(self.block_rows):
            num_rows = len(rows.values)
            facts.see(rows)
            facts.keep(self._examples(rows))
            see(num_rows)
        if not facts.num_rows:
            split = self.reader.wanted.split
            raise InputError(
                f"{self.name} has no rows{f' of the split {split}' if split else ''}; {facts.num_read:,} were read"
            )
        self._declare(facts)
        return self.facts

    def first(self) -> Examples:
        """Return the first block; of rows that can be read only once it is not lost."""
        blocks = self._read(0)
        first = next(blocks, None)
        if first is None:
            raise InputError(f"{self.name} has no rows")
        if self.is_read_once:
            self._begun = chain([first], blocks)
        return first

    def blocks(self, start: int = 0) -> Iterator[Examples]:
        """Yield the blocks of a pass from one on; one may be empty, as all its rows are dropped."""
        if self._begun is None:
            yield from self._read(start)
            return
        begun, self._begun = self._begun, None
        for number, examples in enumerate(begun):
            if number >= start:
                yield examples

    def _read(self, start: int) -> Iterator[Examples]:
        for rows in self.reader.blocks(self.block_rows, start):
            if not self.facts.num_read:
                facts = Facts()
                facts.see(rows)
                examples = self._examples(rows)
                facts.keep(examples)
                self._declare(facts)
            else:
                examples = self._examples(rows)
            yield examples

    def _examples(self, rows: Rows) -> Examples:
        examples = self.reader.examples(rows, is_part=True)
        return examples.take(np.flatnonzero(~overlaps(examples, self.held_out))) if self.held_out else examples

    def _declare(self, facts: Facts) -> None:
        """Read every later block as the rows that are known say."""
        self.facts, wanted = facts, self.reader.wanted
        if wanted.score_range is None and facts.scores and isinstance(wanted.score, (str, type(None))):
            known = self.reader.score_range or range_of(self.name, facts.scores[0], facts.scores[1])
            wanted = replace(wanted, score_range=known)
        if wanted.labels is None and facts.classes:
            wanted = replace(wanted, labels=number_classes(sorted(facts.classes), None, {}).names)
        self.reader = replace(self.reader, wanted=wanted)
