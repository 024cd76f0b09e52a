"""Columns in memory that grow, and filters over whole columns.    N rows.

Rows are only ever added at the end of a buffer, so what a reader took from it stays as it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from munjang.stores.filters import COMPARISONS, And, Compare, Filter, In, IsNull, Like, Not, Or, matches
from munjang.types import Array, Bools, Ints, Scalar, Value

Truth = tuple[Bools, Bools]  # which rows are true, which are false; the rest is unknown
MISSING_VALUES: dict[str, Any] = {"int": 0, "float": 0.0, "bool": False}


class Buffer:
    """An array whose first axis grows; what was given out before is never moved or changed."""

    def __init__(self, *width: int, dtype: Any) -> None:
        self._array = np.zeros((0, *width), dtype)
        self._length = 0

    def append(self, values: Array | Sequence[Any]) -> None:
        end = self._length + len(values)
        if end > len(self._array):
            grown = np.empty((max(end, 2 * self._length, 1024), *self._array.shape[1:]), self._array.dtype)
            grown[: self._length] = self._array[: self._length]
            self._array = grown
        self._array[self._length : end] = values
        self._length = end

    @property
    def rows(self) -> Any:
        return self._array[: self._length]


class Column:
    """One metadata field: numbers as they are, texts as numbers of the distinct ones."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        dtypes: dict[str, Any] = {"int": np.int64, "float": np.float64, "bool": np.bool_, "text": np.int64}
        self._values = Buffer(dtype=dtypes[kind])
        self._known = Buffer(dtype=np.bool_)
        self._numbers: dict[str, int] = {}

    def append(self, values: Sequence[Value]) -> None:
        self._known.append([value is not None for value in values])
        if self.kind == "text":
            numbers = self._numbers
            self._values.append(
                [0 if value is None else numbers.setdefault(str(value), len(numbers)) for value in values]
            )
        else:
            self._values.append([MISSING_VALUES[self.kind] if value is None else value for value in values])

    def truth(self, leaf: Compare | In | Like | IsNull, num_rows: int) -> Truth:
        known: Bools = self._known.rows[:num_rows]
        if isinstance(leaf, IsNull):
            return ~known, known
        if self.kind == "text":
            # Once for each distinct text, then looked up. The list is a copy: another thread may be adding.
            fits = np.array([matches(leaf, {self.name: text}) for text in list(self._numbers)] or [False])
            is_true = fits[self._values.rows[:num_rows]]
        elif isinstance(leaf, In):
            is_true = np.logical_or.reduce([self._compare("=", value, num_rows) for value in leaf.values])
        elif isinstance(leaf, Compare):
            is_true = self._compare(leaf.op, leaf.value, num_rows)
        else:
            raise TypeError(f"{leaf} on {self.kind}")  # check() refuses it before
        return is_true & known, ~is_true & known

    def _compare(self, op: str, value: Scalar, num_rows: int) -> Bools:
        values: Any = self._values.rows[:num_rows]
        if self.kind == "int" and isinstance(value, float):
            values = values.astype(np.float64)  # as filters.matches does
        is_true: Bools = COMPARISONS[op](values, np.asarray(value, values.dtype))
        return is_true


def truth(node: Filter, columns: Mapping[str, Column], num_rows: int) -> Truth:
    """Evaluate a filter as `filters.matches` does, for all rows at once."""
    match node:
        case And(parts) | Or(parts):
            truths = [truth(part, columns, num_rows) for part in parts]
            both, either = (0, 1) if isinstance(node, And) else (1, 0)
            every = np.logical_and.reduce([each[both] for each in truths])
            some = np.logical_or.reduce([each[either] for each in truths])
            return (every, some) if isinstance(node, And) else (some, every)
        case Not(part):
            is_true, is_false = truth(part, columns, num_rows)
            return is_false, is_true
        case _:
            return columns[node.name].truth(node, num_rows)


def rows_that_fit(where: Filter | None, columns: Mapping[str, Column], is_alive: Bools) -> Ints:
    """Return the numbers of the live rows for which the filter is true."""
    if where is not None:
        is_alive = is_alive & truth(where, columns, len(is_alive))[0]
    return np.flatnonzero(is_alive)
