"""Sparse vectors: rows of which only some dimensions are not zero, as compressed rows (CSR).

A and B rows of the two sides, D dimension, N values that are not zero.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from munjang.errors import InputError, MissingExtra
from munjang.types import Floats, Ids, Ints

Row = Mapping[int, float] | tuple[Sequence[int], Sequence[float]]  # dimensions and values


@dataclass(frozen=True)
class SparseVectors:
    """Rows as scipy's CSR has them: row i is `indices[indptr[i]:indptr[i + 1]]` with the `values` there.

    >>> rows = SparseVectors.of([{3: 0.5, 1: 2.0}, {}, {3: 1.0}], dim=5)
    >>> rows[0]
    (array([1, 3], dtype=int32), array([2. , 0.5], dtype=float32))
    >>> rows.dot(rows).tolist()
    [[4.25, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 1.0]]
    """

    indptr: Ints  # [A + 1]
    indices: Ids  # [N], ascending in each row
    values: Floats  # [N]
    dim: int

    @classmethod
    def of(
        cls, rows: Iterable[Mapping[int, float] | tuple[Sequence[int], Sequence[float]]], dim: int
    ) -> "SparseVectors":
        """Make rows of dictionaries {dimension: value}, or of pairs of dimensions and values, in any order."""
        parts = []
        for row in rows:
            names, numbers = (list(row), list(row.values())) if isinstance(row, Mapping) else row
            indices, values = np.asarray(names, np.int64), np.asarray(numbers, np.float32)
            if indices.shape != values.shape:
                raise InputError("Each row of sparse vectors needs as many values as dimensions.")
            order = np.argsort(indices, kind="stable")
            parts.append(cls(np.array([0, len(order)]), indices[order].astype(np.int32), values[order], dim))
        return join(parts, dim)

    @classmethod
    def of_dense(cls, rows_AD: Floats) -> "SparseVectors":
        """Keep what is not zero of dense rows."""
        rows, indices = np.nonzero(rows_AD)
        lengths = np.bincount(rows, minlength=len(rows_AD))
        return cls(
            _starts(lengths), indices.astype(np.int32), rows_AD[rows, indices].astype(np.float32), rows_AD.shape[1]
        )

    def __post_init__(self) -> None:
        if self.indptr.ndim != 1 or not len(self.indptr) or self.indptr[0] or (np.diff(self.indptr) < 0).any():
            raise InputError("indptr of sparse vectors should ascend from 0, with one entry more than there are rows.")
        if not len(self.indices) == len(self.values) == self.indptr[-1]:
            raise InputError(
                f"indptr ends at {self.indptr[-1]}, with {len(self.indices)} indices and {len(self.values)} values."
            )
        if len(self.indices) and not 0 <= int(self.indices.min()) <= int(self.indices.max()) < self.dim:
            raise InputError(f"The indices of sparse vectors should lie between 0 and {self.dim - 1}.")

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and dimensions, as of a matrix."""
        return len(self), self.dim

    @property
    def nnz(self) -> int:
        """The number of values that are not zero."""
        return len(self.values)

    @overload
    def __getitem__(self, row: int) -> tuple[Ids, Floats]: ...
    @overload
    def __getitem__(self, row: slice) -> "SparseVectors": ...
    def __getitem__(self, row: int | slice) -> Any:
        """Return the dimensions and values of one row, or some rows as sparse vectors."""
        if isinstance(row, slice):
            return self.take(np.arange(len(self))[row])
        place = range(len(self))[row]
        part = slice(int(self.indptr[place]), int(self.indptr[place + 1]))
        return self.indices[part], self.values[part]

    def __iter__(self) -> Iterator[tuple[Ids, Floats]]:
        return (self[row] for row in range(len(self)))

    def take(self, rows: Ints) -> "SparseVectors":
        """Return these rows, in this order."""
        rows = np.asarray(rows, np.int64)
        lengths = np.diff(self.indptr)[rows]
        starts = _starts(lengths)
        places = np.repeat(self.indptr[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return SparseVectors(starts, self.indices[places], self.values[places], self.dim)

    def top(self, count: int) -> "SparseVectors":
        """Keep the `count` greatest values of each row."""
        if count < 1:
            raise InputError(f"A row keeps at least 1 dimension, not {count}.")
        kept = [places[np.argsort(-values, kind="stable")[:count]] for places, values in self._places()]
        order = np.concatenate([np.sort(places) for places in kept]) if kept else np.zeros(0, np.int64)
        return SparseVectors(
            _starts([len(places) for places in kept]), self.indices[order], self.values[order], self.dim
        )

    def _places(self) -> Iterator[tuple[Ints, Floats]]:
        for start, end in zip(self.indptr[:-1].tolist(), self.indptr[1:].tolist(), strict=True):
            yield np.arange(start, end), self.values[start:end]

    def dot(self, other: "SparseVectors") -> Floats:
        """Return the dot product of every row with every row of another: [A, B]."""
        if self.dim != other.dim:
            raise InputError(f"Sparse vectors of {self.dim} and {other.dim} dimensions; they must be of one model.")
        scores = np.zeros((len(self), len(other)), np.float32)
        starts, rows, values = other._postings
        for number, (indices, weights) in enumerate(self):
            firsts, lengths = starts[indices], starts[indices + 1] - starts[indices]
            behind = _starts(lengths)
            places = np.repeat(firsts - behind[:-1], lengths) + np.arange(behind[-1])
            products = values[places] * np.repeat(weights, lengths)
            scores[number] = np.bincount(rows[places], products, minlength=len(other))
        return scores

    @cached_property
    def _postings(self) -> tuple[Ints, Ints, Floats]:
        """Return the entries by column: where those of each dimension begin [D + 1], and their rows and values."""
        order = np.argsort(self.indices, kind="stable")
        rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        starts = _starts(np.bincount(self.indices, minlength=self.dim))
        return starts, rows[order], self.values[order]

    @property
    def lengths(self) -> Floats:
        """The length (norm) of each row."""
        squares = np.concatenate([[0.0], np.cumsum(self.values.astype(np.float64) ** 2)])
        return np.sqrt(np.maximum(squares[self.indptr[1:]] - squares[self.indptr[:-1]], 0)).astype(np.float32)

    def to_dense(self) -> Floats:
        """Return a dense matrix [A, D]."""
        dense = np.zeros(self.shape, np.float32)
        dense[np.repeat(np.arange(len(self)), np.diff(self.indptr)), self.indices] = self.values
        return dense

    def to_scipy(self) -> Any:
        """Return scipy's csr_matrix."""
        try:
            from scipy.sparse import csr_matrix
        except ImportError as error:
            raise MissingExtra("scipy", "cluster", "to_scipy()") from error
        return csr_matrix((self.values, self.indices, self.indptr), self.shape)


def join(parts: Sequence[SparseVectors], dim: int) -> SparseVectors:
    """Put the rows of several one below the other."""
    starts = _starts(np.concatenate([np.zeros(0, np.int64), *(np.diff(part.indptr) for part in parts)]))
    indices = np.concatenate([np.zeros(0, np.int32), *(part.indices for part in parts)])
    values = np.concatenate([np.zeros(0, np.float32), *(part.values for part in parts)])
    return SparseVectors(starts, indices, values, dim)


def _starts(lengths: Any) -> Ints:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
