"""Sparse and token vectors of a LanceDB table, which has no index for them: read once, then kept in memory.

They are searched exactly. More than MAX_KEPT_BYTES are read again for every search instead, a batch at a time.
"""

import threading
from collections.abc import Iterator
from typing import Any

from munjang.stores.base import Found, Schema
from munjang.stores.beside import Score, merged, sparse_of, tokens_of
from munjang.types import Array
from munjang.vectors.sparse import SparseVectors

MAX_KEPT_BYTES = 1 << 30
BATCH_ROWS = 8192


class Kept:
    """One column, as it was at one state of the table."""

    def __init__(self, name: str, score: Score) -> None:
        self.name, self.score = name, score
        self._lock = threading.Lock()
        self._stamp: tuple[Any, ...] = ()
        self._rows: tuple[list[str], Any] | None = None  # None: too many to keep

    def search(
        self, table: Any, schema: Schema, stamp: tuple[Any, ...], queries: Any, k: int, expression: Any
    ) -> list[Found]:
        """Return the k best rows of each query among those that fit the expression."""
        with self._lock:
            if stamp != self._stamp:
                self._rows, self._stamp = self._read(table, schema), stamp
            kept = self._rows
        found = [Found([], [])] * len(queries)
        if kept is None:
            for ids, rows in self._batches(table, schema, expression):
                found = merged(found, ids, self.score(queries, rows), k)
            return found
        ids, rows = kept
        scores_QN = self.score(queries, rows)
        if expression is not None:
            fitting = set(table.search().where(expression).select(["id"]).to_arrow().column("id").to_pylist())
            places = [place for place, row_id in enumerate(ids) if row_id in fitting]
            ids, scores_QN = [ids[place] for place in places], scores_QN[:, places]
        return merged(found, ids, scores_QN, k)

    def _read(self, table: Any, schema: Schema) -> tuple[list[str], Any] | None:
        ids, values, num_bytes = list[str](), list[bytes](), 0
        for some, more in self._bytes(table, None):
            num_bytes += sum(map(len, more))
            if num_bytes > MAX_KEPT_BYTES:
                return None
            ids += some
            values += more
        return ids, self._decoded(values, schema)

    def _batches(self, table: Any, schema: Schema, expression: Any) -> Iterator[tuple[list[str], Any]]:
        return ((ids, self._decoded(values, schema)) for ids, values in self._bytes(table, expression))

    def _bytes(self, table: Any, expression: Any) -> Iterator[tuple[list[str], list[bytes]]]:
        query = table.search() if expression is None else table.search().where(expression)
        for batch in query.select(["id", self.name]).to_batches(batch_size=BATCH_ROWS):
            yield batch.column("id").to_pylist(), batch.column(self.name).to_pylist()

    def _decoded(self, values: list[bytes], schema: Schema) -> SparseVectors | list[Array]:
        return sparse_of(values, schema.sparse_dimension) if self.name == "sparse" else tokens_of(values, schema)
