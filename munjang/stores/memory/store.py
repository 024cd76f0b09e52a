"""Rows in memory.    N rows, Q queries, D dimensions.

Every search goes over the full vectors; int8 and binary ones are kept beside them and returned as they came.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from munjang.errors import InputError
from munjang.stores.arrow import Columns
from munjang.stores.base import Abilities, Found, Rows, Schema
from munjang.stores.beside import check_sparse_queries, check_token_queries, merged, sparse_scores, token_scores
from munjang.stores.checks import (
    DTYPES,
    NEEDS_FULL,
    asked,
    check_columns,
    check_fields,
    check_queries,
    check_rows,
    check_schema,
)
from munjang.stores.exact import candidates
from munjang.stores.exact_gpu import OnGpu
from munjang.stores.filters import RESERVED, Filter, check
from munjang.stores.memory.bm25 import Postings
from munjang.stores.memory.columns import Buffer, Column, rows_that_fit
from munjang.stores.scoring import best, rescored
from munjang.types import Array, Bools, Floats, Ints, Value
from munjang.vectors.sparse import SparseVectors, join

ABILITIES = Abilities(
    vectors=("float32", "float16", "int8", "binary"),
    metrics=("cosine", "dot", "euclidean"),
    has_terms=True,
    has_sparse=True,
    has_tokens=True,
)


@dataclass
class _Table:
    """All rows that were added since it was last tidied up; a row that is gone is marked, never moved."""

    schema: Schema
    ids: list[str] = field(default_factory=list)
    document_ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    metadata: list[Mapping[str, Value]] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    tokens: list[Array] = field(default_factory=list)
    place_of: dict[str, int] = field(default_factory=dict)  # of the rows that are there
    places_of_document: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        width = self.schema.dimension // 8 if self.schema.vectors == "binary" else self.schema.dimension
        self.vectors = Buffer(width, dtype=DTYPES[self.schema.vectors])
        needs_full = self.schema.vectors in NEEDS_FULL
        self.full = Buffer(self.schema.dimension, dtype=np.float32) if needs_full else self.vectors
        self.lengths = Buffer(dtype=np.float32)
        self.spans = Buffer(2, dtype=np.int64)
        self.is_alive = Buffer(dtype=np.bool_)
        self.columns = {name: Column(name, kind) for name, kind in {**self.schema.fields, **RESERVED}.items()}
        self.postings = Postings()
        self.sparse = SparseVectors.of([], self.schema.sparse_dimension)

    def append(self, rows: Rows) -> None:
        assert rows.vectors is not None
        start = len(self.ids)
        self.ids += rows.ids
        self.document_ids += rows.document_ids
        self.texts += rows.texts
        self.metadata += [{name: value for name, value in row.items() if value is not None} for row in rows.metadata]
        self.terms += rows.terms or [""] * len(rows)
        self.tokens += rows.tokens or []
        if rows.sparse is not None:
            self.sparse = join([self.sparse, rows.sparse], self.sparse.dim)
        self.vectors.append(rows.vectors)
        if rows.full_vectors is not None and self.full is not self.vectors:
            self.full.append(rows.full_vectors)
        full = self.full.rows[start:]
        self.lengths.append(np.linalg.norm(np.asarray(full, np.float32), axis=1))
        self.spans.append(np.stack([np.asarray(rows.starts, np.int64), np.asarray(rows.ends, np.int64)], axis=1))
        self.is_alive.append(np.ones(len(rows), np.bool_))
        for name, column in self.columns.items():
            column.append(
                {"id": rows.ids, "document_id": rows.document_ids}.get(name) or [r.get(name) for r in rows.metadata]
            )
        self.postings.append(self.terms[start:])
        for place, (row_id, document_id) in enumerate(zip(rows.ids, rows.document_ids, strict=True), start):
            self.place_of[row_id] = place
            self.places_of_document[document_id].append(place)

    def remove(self, ids: Sequence[str]) -> None:
        for row_id in ids:
            place = self.place_of.pop(row_id)
            self.is_alive.rows[place] = False
            places = self.places_of_document[self.document_ids[place]]
            places.remove(place)
            if not places:
                del self.places_of_document[self.document_ids[place]]

    def take(self, places: Sequence[int] | Ints, with_vectors: bool) -> Rows:
        chosen = np.asarray(places, np.int64)
        spans = self.spans.rows[chosen]
        has_full = with_vectors and self.full is not self.vectors
        return Rows(
            [self.ids[place] for place in chosen],
            [self.document_ids[place] for place in chosen],
            [self.texts[place] for place in chosen],
            spans[:, 0].tolist(),
            spans[:, 1].tolist(),
            [dict(self.metadata[place]) for place in chosen],
            self.vectors.rows[chosen] if with_vectors else None,
            np.asarray(self.full.rows[chosen], np.float32) if has_full else None,
            [self.terms[place] for place in chosen],
            self.sparse.take(chosen) if with_vectors and self.schema.sparse_dimension else None,
            [self.tokens[place] for place in chosen] if with_vectors and self.schema.token_dimension else None,
        )


class MemoryStore:
    """A store that lives as long as its process."""

    abilities = ABILITIES

    def __init__(self, schema: Schema) -> None:
        check_schema(schema, ABILITIES, "memory")
        self.schema = schema
        self._table = _Table(schema)
        self._lock = threading.RLock()
        self._on_gpu = OnGpu()

    @classmethod
    def open(cls, location: str, schema: Schema | None, create: bool, name: str) -> "MemoryStore":
        """Create a store: there is never one to be found."""
        if location != "memory:":
            raise InputError(f"A store in memory is opened as 'memory:', not {location!r}.")
        return cls(asked(schema, create, location))

    def extend(self, fields: Mapping[str, str]) -> None:
        with self._lock:
            new = check_fields(fields, self.schema.fields)
            self.schema = replace(self.schema, fields={**self.schema.fields, **new})
            self._table.schema = self.schema
            for name, kind in new.items():
                column = Column(name, kind)
                column.append([None] * len(self._table.ids))
                self._table.columns[name] = column

    def add(self, rows: Rows) -> None:
        with self._lock:
            check_rows(rows, self.schema, ABILITIES)
            for row_id in rows.ids:
                if row_id in self._table.place_of:
                    raise InputError(f"The id {row_id!r} exists already; upsert replaces it.")
            self._table.append(rows)

    def upsert(self, rows: Rows) -> None:
        with self._lock:
            check_rows(rows, self.schema, ABILITIES)
            self._table.remove([row_id for row_id in rows.ids if row_id in self._table.place_of])
            self._table.append(rows)
            self._tidy()

    def load(self, columns: Columns, is_new: bool) -> None:
        check_columns(columns, self.schema)
        self.upsert(as_rows(columns))

    def delete(self, document_ids: Sequence[str]) -> int:
        with self._lock:
            table = self._table
            ids = [table.ids[place] for each in set(document_ids) for place in table.places_of_document.get(each, [])]
            table.remove(ids)
            self._tidy()
            return len(ids)

    def remove(self, ids: Sequence[str]) -> int:
        with self._lock:
            there = [row_id for row_id in dict.fromkeys(ids) if row_id in self._table.place_of]
            self._table.remove(there)
            self._tidy()
            return len(there)

    def _tidy(self, fraction: float = 0.5) -> None:
        """Make a new table when more than this fraction of the rows is gone. Those who read the old one keep it."""
        old = self._table
        if len(old.ids) - len(old.place_of) > fraction * len(old.ids) + 1000 * (fraction > 0):
            self._table = _Table(self.schema)
            self._table.append(old.take(np.flatnonzero(old.is_alive.rows), with_vectors=True))

    def get(self, ids: Sequence[str], with_vectors: bool = False) -> Rows:
        with self._lock:
            place_of = self._table.place_of
            return self._table.take([place_of[each] for each in ids if each in place_of], with_vectors)

    def passages(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        with self._lock:
            table = self._table
            found = {}
            for document_id in document_ids:
                places = table.places_of_document.get(document_id, [])
                order = sorted((int(table.spans.rows[place, 0]), table.ids[place]) for place in places)
                found[document_id] = [row_id for _, row_id in order]
            return found

    def search(self, queries_QD: Floats, k: int, where: Filter | None = None) -> list[Found]:
        queries_QD = check_queries(queries_QD, self.schema, k)
        with self._lock:
            table = self._table
            rows, _ = self._fitting(where)
            vectors_ND, lengths_N = table.full.rows, table.lengths.rows
        metric, found = self.schema.metric, []
        asked_for = queries_QD, vectors_ND, lengths_N, rows, k, metric
        near = self._on_gpu.candidates(*asked_for) or candidates(*asked_for)
        for query, places in zip(queries_QD, near, strict=True):
            ids = [table.ids[place] for place in places]
            found.append(rescored(query, ids, vectors_ND[places], metric, k))
        return found

    def search_terms(self, queries: Sequence[str], k: int, where: Filter | None = None) -> list[Found]:
        check_queries(np.zeros((0, 0), np.float32), self.schema, k)
        with self._lock:
            table = self._table
            rows, is_alive = self._fitting(where)
            found = []
            for query in queries:
                scores = table.postings.scores(query, is_alive)[rows]
                hits = np.flatnonzero(scores > 0)
                found.append(best([table.ids[place] for place in rows[hits]], scores[hits], k))
            return found

    def search_sparse(self, queries: SparseVectors, k: int, where: Filter | None = None) -> list[Found]:
        check_sparse_queries(queries, self.schema, k)
        with self._lock:
            table, (rows, _) = self._table, self._fitting(where)
            sparse = table.sparse
        return merged(_none(queries), [table.ids[row] for row in rows], sparse_scores(queries, sparse)[:, rows], k)

    def search_tokens(self, queries: Sequence[Array], k: int, where: Filter | None = None) -> list[Found]:
        check_token_queries(queries, self.schema, k)
        with self._lock:
            table, (rows, _) = self._table, self._fitting(where)
            tokens = [table.tokens[row] for row in rows]
        return merged(_none(queries), [table.ids[row] for row in rows], token_scores(queries, tokens), k)

    def _fitting(self, where: Filter | None) -> tuple[Ints, Bools]:
        if where is not None:
            check(where, self.schema.fields)
        is_alive: Bools = self._table.is_alive.rows
        return rows_that_fit(where, self._table.columns, is_alive), is_alive

    def count(self, where: Filter | None = None) -> int:
        with self._lock:
            return len(self._fitting(where)[0])

    def scan(self, batch_rows: int = 4096, with_vectors: bool = True) -> Iterator[Rows]:
        with self._lock:  # now, not when the first batch is asked for
            table, (places, _) = self._table, self._fitting(None)
        starts = range(0, len(places), batch_rows)
        return (table.take(places[start : start + batch_rows], with_vectors) for start in starts)

    def compact(self) -> dict[str, Any]:
        with self._lock:
            gone = len(self._table.ids) - len(self._table.place_of)
            self._tidy(fraction=0)
            return {"rows_removed": gone}

    def info(self) -> dict[str, Any]:
        with self._lock:
            table = self._table
            arrays: list[Array] = [table.vectors.rows] + ([table.full.rows] if table.full is not table.vectors else [])
            return {
                "engine": "memory",
                "rows": len(table.place_of),
                "bytes": sum(array.nbytes for array in arrays),
                "indexes": [],
            }

    def put_facts(self, facts: Mapping[str, Any]) -> None:
        with self._lock:
            self.schema = replace(self.schema, facts=dict(facts))

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _none(queries: Sized) -> list[Found]:
    return [Found([], [])] * len(queries)


def as_rows(columns: Columns) -> Rows:
    """Convert whole columns to rows."""
    count = len(columns)
    texts = columns.texts.to_pylist()
    rows = Rows(
        columns.ids.to_pylist(),
        columns.document_ids.to_pylist(),
        texts,
        [0] * count,
        [len(text) for text in texts],
        [{}] * count,
        columns.vectors,
        columns.full_vectors,
    )
    return rows if columns.terms is None else replace(rows, terms=columns.terms.to_pylist())
