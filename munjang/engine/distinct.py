"""The different items of a call, found as far as they are asked for: a device begins before all have been seen."""

from collections.abc import Hashable
from itertools import islice
from typing import Generic, TypeVar

import numpy as np

from munjang.types import Ints

T = TypeVar("T", bound=Hashable)


class Distinct(Generic[T]):
    """Items without their repetitions, in the order in which they first appear; for one thread at a time."""

    def __init__(self, items: list[T]) -> None:
        self.items, self.num_items = items, len(items)
        self.num_seen = self.num_found = 0
        self.known: dict[T, None] = {}
        self.found: list[T] | None = None  # where an item is repeated; None: as many as were seen

    @classmethod
    def checked(cls, items: list[T]) -> "Distinct[T]":
        """Take items that are known to be different."""
        distinct = cls(items)
        distinct.num_seen = distinct.num_found = len(items)
        return distinct

    def __len__(self) -> int:
        """Return how many there are; the most that there can be, as long as not all were seen."""
        return self.num_found + self.num_items - self.num_seen

    def take(self, start: int, end: int) -> list[T]:
        """Return the items from `start` up to `end`, or as many as there are."""
        while self.num_found < end and self.num_seen < self.num_items:
            part = self.items[self.num_seen : min(self.num_seen + end - self.num_found, self.num_items)]
            self.known.update(dict.fromkeys(part))
            num_new = len(self.known) - self.num_found
            if self.found is not None:  # a dictionary keeps the order
                self.found += [*islice(reversed(self.known), num_new)][::-1]
            elif num_new < len(part):
                self.found = list(self.known)
            self.num_seen, self.num_found = self.num_seen + len(part), self.num_found + num_new
        if self.num_seen == self.num_items and self.found is None and self.known:
            self.known = {}  # freed here, while a device computes, and not at the end of the call
        return (self.items if self.found is None else self.found)[start:end]

    def all(self) -> list[T]:
        """Return all of them."""
        return self.take(0, self.num_items)

    def rows(self) -> Ints | None:
        """Return which of them each item is; None: no item is repeated."""
        self.take(0, self.num_items)
        if self.found is None:
            return None
        numbers = dict(zip(self.found, range(len(self.found)), strict=True))
        return np.fromiter(map(numbers.__getitem__, self.items), np.int64, self.num_items)
