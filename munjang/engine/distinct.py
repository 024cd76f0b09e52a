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
        self.num_seen = 0
        self.known: set[T] = set()  # filled in half of the time that a dictionary takes
        self.order: dict[T, None] = {}  # instead of it, from the first repetition on
        self.found: list[T] | None = None  # None: all that were seen

    @classmethod
    def checked(cls, items: list[T]) -> "Distinct[T]":
        """Take items that are known to be different."""
        distinct = cls(items)
        distinct.num_seen = len(items)
        return distinct

    @property
    def num_found(self) -> int:
        return self.num_seen if self.found is None else len(self.found)

    def __len__(self) -> int:
        """Return how many there are; the most that there can be, as long as not all were seen."""
        return self.num_found + self.num_items - self.num_seen

    def take(self, start: int, end: int) -> list[T]:
        """Return the items from `start` up to `end`, or as many as there are."""
        while self.num_found < end and self.num_seen < self.num_items:
            part = self.items[self.num_seen : min(self.num_seen + end - self.num_found, self.num_items)]
            self.num_seen += len(part)
            if self.found is None:
                self.known.update(part)
                if len(self.known) < self.num_seen:
                    self.order = dict.fromkeys(self.items[: self.num_seen])
                    self.found, self.known = list(self.order), set()
            else:
                self.order.update(dict.fromkeys(part))
                self.found += [*islice(reversed(self.order), len(self.order) - len(self.found))][::-1]
        if self.num_seen == self.num_items and self.known:
            self.known = set()  # freed here, while a device computes, and not at the end of the call
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
