"""Rows that a search has read: they are asked for next, and finding ten of a million by their ids takes 3 ms."""

import threading
from collections.abc import Sequence
from typing import Any

MAX_ROWS, MAX_CHARS = 1_000, 1_000_000


class Recent:
    """Texts and JSON by id, as they were at one state of the table; the oldest ones go first."""

    def __init__(self) -> None:
        self._lock, self._stamp = threading.Lock(), tuple[Any, ...]()
        self._rows: dict[str, tuple[str, str]] = {}
        self._num_chars = 0

    def put(self, stamp: tuple[Any, ...], ids: Sequence[str], texts: Sequence[str], rest: Sequence[str]) -> None:
        """Rows that were read when the table had this stamp or a later one; what is known of another is forgotten."""
        with self._lock:
            if stamp != self._stamp:
                self._rows, self._num_chars, self._stamp = {}, 0, stamp
            for row_id, *row in zip(ids, texts, rest, strict=True):
                self._drop(row_id)
                self._rows[row_id] = (row[0], row[1])
                self._num_chars += len(row[0]) + len(row[1])
            while len(self._rows) > MAX_ROWS or self._num_chars > MAX_CHARS:
                self._drop(next(iter(self._rows)))

    def _drop(self, row_id: str) -> None:
        self._num_chars -= sum(map(len, self._rows.pop(row_id, ())))

    def get(self, stamp: tuple[Any, ...], ids: Sequence[str]) -> list[tuple[str, str]] | None:
        """Text and JSON of each; None where one is not known, or the table has changed."""
        with self._lock:
            if stamp != self._stamp or not all(row_id in self._rows for row_id in ids):
                return None
            return [self._rows[row_id] for row_id in ids]
