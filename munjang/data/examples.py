"""Examples: the rows that training and evaluation work on, whatever file they came from."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from munjang.errors import InputError
from munjang.types import Doubles, Ints


def number_texts(texts: Iterable[str]) -> Ints:
    """Number the texts from 0 in the order in which they first occur; equal texts get the same number.

    >>> number_texts(["a cat", "a dog", "a cat"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)


@dataclass(frozen=True)
class Examples:
    """Text columns of equal length, and what is said about each row.

    >>> Examples("made up", (["a cat"], ["a dog"]), scores=np.array([0.4])).scores
    array([0.4])
    """

    name: str  # what errors and reports call it
    texts: tuple[list[str], ...]  # one list a column
    columns: tuple[str, ...] = ()  # what the columns were called
    labels: Ints | None = None  # class of each row
    label_names: tuple[str, ...] = ()  # of each class, in the order of their numbers
    scores: Doubles | None = None  # [N], 0 to 1 where they say how similar two texts are, else as they are; or [N, K]
    notes: tuple[str, ...] = field(default=(), compare=False)  # what the reader found out or dropped, for people

    def __post_init__(self) -> None:
        sizes = {len(column) for column in self.texts}
        sizes |= {len(values) for values in (self.labels, self.scores) if values is not None}
        if len(sizes) != 1:
            raise InputError(f"{self.name}: columns of {sorted(sizes)} rows; every row needs all of them.")

    def __len__(self) -> int:
        return len(self.texts[0])

    def take(self, rows: Ints | Sequence[int]) -> "Examples":
        """Keep some of the rows."""
        at = np.asarray(rows, np.int64)
        texts = tuple([column[row] for row in at.tolist()] for column in self.texts)
        labels = None if self.labels is None else self.labels[at]
        return replace(self, texts=texts, labels=labels, scores=None if self.scores is None else self.scores[at])

    def noted(self, *notes: str) -> "Examples":
        """Add a note for the user."""
        return replace(self, notes=(*self.notes, *notes))

    @cached_property
    def fingerprint(self) -> str:
        """Hash all rows: a resumed run has to have the same ones."""
        found = hashlib.blake2b(digest_size=16)
        for column in self.texts:
            found.update(b"\0column\0" + "\0".join(column).encode("utf-8", "surrogatepass"))
        for values in (self.labels, self.scores):
            found.update(b"\0values\0" + (b"" if values is None else np.ascontiguousarray(values).tobytes()))
        return found.hexdigest()
