"""Milvus, a server (2.3 or newer) or milvus-lite in a folder.    N rows, Q queries, D dimensions.

One collection a store, and one of ours that says what each holds. Metadata are one JSON field: versions before 2.5 know
no null and none can add a column to existing rows. Every write is an upsert and every read asks for Strong
consistency, as Milvus alone would keep an id twice and miss what was just written. What is found is rescored.
"""

import hashlib
import json
import pickle
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from munjang.errors import InputError, MissingExtra
from munjang.stores.arrow import Columns
from munjang.stores.base import Abilities, Found, Rows, Schema, StoreError
from munjang.stores.beside import check_sparse_queries, merged, sparse_scores
from munjang.stores.checks import agreed, asked, check_columns, check_fields, check_queries, check_rows, check_schema
from munjang.stores.filters import Filter, check
from munjang.stores.milvus.client import MAX_ANSWER_ROWS, MAX_TEXT_BYTES, Client
from munjang.stores.milvus.filters import ALWAYS, expression, key, within
from munjang.stores.milvus.rows import columns_of, entries, json_of, matrix, parts, sparse_of
from munjang.stores.scoring import best, rescored
from munjang.types import Array, Floats
from munjang.vectors.sparse import SparseVectors

ABILITIES = Abilities(
    vectors=("float32",),  # 2.3 keeps one vector a row, of float32; milvus-lite knows no other kind either
    metrics=("cosine", "dot", "euclidean"),
    max_dimension=32_768,
    max_text_bytes=MAX_TEXT_BYTES,
    max_id_bytes=MAX_TEXT_BYTES,
    max_metadata_bytes=MAX_TEXT_BYTES,
    has_sparse=True,
)
FORMAT = 1
CATALOG = "munjang_stores"
METRICS = {"cosine": "COSINE", "dot": "IP", "euclidean": "L2"}
CASTS = {"text": str, "int": int, "float": float, "bool": bool}
FIXED_FIELDS = ["id", "document_id", "text", "start_at", "end_at", "metadata"]
MIN_GRAPH_ROWS = 50_000  # below, reading every vector takes some milliseconds
NUM_BEYOND_K = 16  # candidates: Milvus sums in single precision, so the last ones may stand in another order
MAX_QUERY_IDS = 500
MAX_QUERIES = 32  # searched at once
MAX_MESSAGE_BYTES = 32 << 20  # the server takes 64 MB
MAX_ROW_OVERHEAD_BYTES = 256  # of a row's span, flags and heads


class MilvusStore:
    """A store in a Milvus server or folder."""

    abilities = ABILITIES

    def __init__(
        self, location: str, schema: Schema | None, create: bool, name: str, min_graph_rows: int = MIN_GRAPH_ROWS
    ) -> None:
        self.location, self.name, self.min_graph_rows = location, name, min_graph_rows
        self._collection = "munjang_" + hashlib.sha256(name.encode()).hexdigest()[:32]
        self._lock = threading.RLock()
        if schema is not None:
            check_schema(schema, ABILITIES, "Milvus")
        self._client = Client(_address(location, create and schema is not None))
        try:
            recorded = self._read()
            if recorded is None:
                self.schema = self._make(asked(schema, create, _shown(location)))
            else:
                self.schema = agreed(recorded, schema, _shown(location))
        except BaseException:
            self._client.close()
            raise

    @classmethod
    def open(cls, location: str, schema: Schema | None, create: bool, name: str) -> "MilvusStore":
        """Open the store of that name, or create it."""
        return cls(location, schema, create, name)

    def _make(self, schema: Schema) -> Schema:
        self._client.make(CATALOG, {"id": "text", "record": "text"}, 2, "L2")
        fields = {"id": "text", "document_id": "text", "text": "text", "start_at": "int", "end_at": "int"}
        fields |= {"metadata": "json", "is_zero": "bool"}
        has_sparse = bool(schema.sparse_dimension)
        self._client.make(self._collection, fields, schema.dimension, METRICS[schema.metric], has_sparse)
        self._write(schema)  # last: what is in the catalog is whole
        return schema

    def _read(self) -> Schema | None:
        if not self._client.has(CATALOG):
            return None
        found = self._client.query(CATALOG, within("id", [self.name]), ["record"])
        if not found:
            return None
        record = json.loads(found[0]["record"])
        if record.pop("format") > FORMAT:
            raise StoreError(f"The store {self.name!r} has a format newer than {FORMAT}: update Munjang to read it.")
        return Schema(**record)

    def _write(self, schema: Schema) -> None:
        kept = asdict(replace(schema, fields=dict(schema.fields), facts=dict(schema.facts)))
        record = json.dumps({"format": FORMAT, **kept}, ensure_ascii=False)
        if len(record.encode()) > MAX_TEXT_BYTES:
            raise InputError(f"Fields and facts take more than the {MAX_TEXT_BYTES:,} bytes of a value in Milvus.")
        self._client.upsert(CATALOG, [{"id": self.name, "record": record, "vector": [0.0, 0.0]}])

    def _refresh(self) -> Schema:
        schema = self._read()
        if schema is None:
            raise StoreError(f"The store {self.name!r} was dropped while it was open.")
        self.schema = schema
        return schema

    def extend(self, fields: Mapping[str, str]) -> None:
        with self._lock:
            while new := check_fields(fields, self._refresh().fields):  # again if another process wrote in between
                self._write(replace(self.schema, fields={**self.schema.fields, **new}))

    def add(self, rows: Rows) -> None:
        with self._lock:
            records = self._records(rows)
            for ids in parts(rows.ids, MAX_QUERY_IDS):
                if there := self._client.query(self._collection, within("id", ids), ["id"]):
                    first = min(row["id"] for row in there)
                    raise InputError(f"The id {first!r} exists already; upsert replaces it.")
            self._put(records)

    def upsert(self, rows: Rows) -> None:
        with self._lock:
            self._put(self._records(rows))

    def load(self, columns: Columns, is_new: bool) -> None:
        check_columns(columns, self.schema, MAX_TEXT_BYTES)
        with self._lock:
            row_bytes = 4 * self.schema.dimension + MAX_ROW_OVERHEAD_BYTES
            batches = list(columns.batches_of_bytes(MAX_MESSAGE_BYTES, row_bytes))
            with self._all_or_none(columns.ids.to_pylist() if len(batches) > 1 else [], is_new):
                for batch in batches:
                    vectors = np.asarray(batch.vectors, np.float32)
                    self._client.upsert_columns(self._collection, columns_of(batch), vectors)

    def _records(self, rows: Rows) -> list[dict[str, Any]]:
        check_rows(rows, self.schema, ABILITIES)
        keys = {name: (key(name), CASTS[kind]) for name, kind in self.schema.fields.items()}
        records = []
        for at, (row_id, document_id) in enumerate(zip(rows.ids, rows.document_ids, strict=True)):
            values = {name: value for name, value in rows.metadata[at].items() if value is not None}
            metadata = {keys[name][0]: keys[name][1](value) for name, value in values.items()}
            vector = rows.vectors[at] if rows.vectors is not None else np.zeros(0, np.float32)
            record: dict[str, Any] = {"id": row_id, "document_id": document_id, "text": rows.texts[at]}
            record |= {"metadata": metadata, "start_at": int(rows.starts[at]), "end_at": int(rows.ends[at])}
            if rows.sparse is not None:
                # Milvus refuses an empty row: a dimension behind the last, which no query has, stands for it
                record["sparse"] = entries(*rows.sparse[at]) or {rows.sparse.dim: 1.0}
            records.append(record | {"is_zero": not vector.any(), "vector": vector.tolist()})
        return records

    @property
    def _vector_fields(self) -> list[str]:
        return ["vector", *(["sparse"] if self.schema.sparse_dimension else [])]

    def _put(self, records: list[dict[str, Any]]) -> None:
        messages = list(self._messages(records))
        with self._all_or_none([each["id"] for each in records] if len(messages) > 1 else []):
            for part in messages:
                self._client.upsert(self._collection, part)

    def _messages(self, records: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """Cut records into as many as one message holds."""
        size = 4 * self.schema.dimension + max((len(each["text"].encode()) + 2048 for each in records), default=0)
        return parts(records, max(MAX_MESSAGE_BYTES // size, 1))

    @contextmanager
    def _all_or_none(self, ids: Sequence[str], is_new: bool = False) -> Iterator[None]:
        """Take back what was written if one of several messages fails; `ids` are those of all rows."""
        old: list[dict[str, Any]] = []
        for part in [] if is_new else parts(ids, MAX_QUERY_IDS):
            found = self._fetched(part, [*FIXED_FIELDS, "is_zero", *self._vector_fields])
            old += [row | {"vector": np.asarray(row["vector"], np.float32)} for row in found]  # an eighth of a list
        try:
            yield
        except BaseException as error:
            try:
                for some in self._messages(old):  # before others are removed: what was there is never gone
                    rows = [row | {"vector": row["vector"].tolist()} for row in some]
                    self._client.upsert(self._collection, rows)
                kept = {row["id"] for row in old}
                self._remove([row_id for row_id in ids if row_id not in kept])
            except StoreError as failure:
                raise StoreError(
                    f"{error} Of {len(ids):,} rows from {ids[0]!r:.60} to {ids[-1]!r:.60} some are written, the others "
                    f"as before, and that could not be undone ({failure}). Write them again: none is stored twice."
                ) from error
            raise

    def delete(self, document_ids: Sequence[str]) -> int:
        with self._lock:
            return self._remove([row_id for ids in self.passages(document_ids).values() for row_id in ids])

    def remove(self, ids: Sequence[str]) -> int:
        with self._lock:
            return self._remove([row["id"] for row in self._fetched(list(dict.fromkeys(ids)), ["id"])])

    def _remove(self, ids: Sequence[str]) -> int:
        for part in parts(ids, MAX_QUERY_IDS):
            self._client.delete(self._collection, within("id", part))
        return len(ids)

    def _fetched(self, ids: Sequence[str], columns: list[str]) -> list[dict[str, Any]]:
        tests = [within("id", part) for part in parts(ids, MAX_QUERY_IDS)]
        found = [row for test in tests for row in self._client.query(self._collection, test, columns)]
        return [{name: row[name] for name in columns} for row in found]

    def get(self, ids: Sequence[str], with_vectors: bool = False) -> Rows:
        columns = FIXED_FIELDS + (self._vector_fields if with_vectors else [])
        found = self._fetched(list(dict.fromkeys(ids)), columns)
        by_id = {row["id"]: row for row in found}
        return self._rows([by_id[each] for each in ids if each in by_id], with_vectors)

    def _rows(self, found: Sequence[Mapping[str, Any]], with_vectors: bool) -> Rows:
        names = {key(name): (name, CASTS[kind]) for name, kind in self.schema.fields.items()}
        metadata = [
            {names[each][0]: names[each][1](value) for each, value in json_of(row["metadata"]).items() if each in names}
            for row in found
        ]
        columns: list[list[Any]] = [[row[name] for row in found] for name in FIXED_FIELDS[:-1]]
        ids, document_ids, texts, starts, ends = columns
        vectors = matrix(found, self.schema.dimension) if with_vectors else None
        has_sparse = with_vectors and self.schema.sparse_dimension
        sparse = sparse_of(found, self.schema.sparse_dimension) if has_sparse else None
        return Rows(ids, document_ids, texts, starts, ends, metadata, vectors, sparse=sparse)

    def passages(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[tuple[int, str]]] = {document_id: [] for document_id in document_ids}
        for part in parts(list(found), MAX_QUERY_IDS):
            for page in self._client.pages(
                self._collection, within("document_id", part), ["id", "document_id", "start_at"], MAX_ANSWER_ROWS
            ):
                for row in page:
                    found[row["document_id"]].append((row["start_at"], row["id"]))
        return {document_id: [row_id for _, row_id in sorted(places)] for document_id, places in found.items()}

    def search(self, queries_QD: Floats, k: int, where: Filter | None = None) -> list[Found]:
        queries_QD = check_queries(queries_QD, self.schema, k)
        if k > MAX_ANSWER_ROWS:
            raise InputError(f"Milvus gives {MAX_ANSWER_ROWS:,} rows at most, not {k:,}.")
        test, found = self._where(where), []
        for batch in parts(queries_QD, MAX_QUERIES):
            hits = self._hits(batch, min(k + NUM_BEYOND_K, MAX_ANSWER_ROWS), test)
            found += [self._best(query, own, k, test) for query, own in zip(batch, hits, strict=True)]
        return found

    def _hits(self, queries_QD: Floats, number: int, test: str) -> list[list[dict[str, Any]]]:
        metric = METRICS[self.schema.metric]
        is_only = not self.schema.sparse_dimension
        return self._client.search(self._collection, queries_QD.tolist(), number, test, metric, is_only=is_only)

    def _best(self, query_D: Floats, hits: list[dict[str, Any]], k: int, test: str) -> Found:
        """Return the k best candidates; more are asked for while the last one is as good as the k-th."""
        metric, number = self.schema.metric, min(k + NUM_BEYOND_K, MAX_ANSWER_ROWS)
        while True:
            ids = [hit["id"] for hit in hits]
            entities = [hit["entity"] for hit in hits]
            found = rescored(query_D, ids, matrix(entities, self.schema.dimension), metric, len(ids) or 1)
            is_tie = len(ids) == number and found.scores[-1] >= found.scores[k - 1] - 1e-6
            if not is_tie or number == MAX_ANSWER_ROWS:
                break
            number = min(number * 4, MAX_ANSWER_ROWS)
            [hits] = self._hits(query_D[None], number, test)
        if len(found.ids) < k and self._number(test) > len(found.ids):  # a graph may end early under a narrow filter
            return self._exact(query_D, test, k)
        if metric == "cosine" and len(found.ids) >= k and found.scores[k - 1] <= 0:
            zeros = self._zeros(test, k)  # servers leave them out: their cosine is no number there, and 0 here
            ids = [row_id for row_id in zeros if row_id not in set(found.ids)]
            found = Found(found.ids + ids, found.scores + [0.0] * len(ids))
        return best(found.ids, np.array(found.scores, np.float64), k)

    def _exact(self, query_D: Floats, test: str, k: int) -> Found:
        """Search every row that fits, a page at a time."""
        found = Found([], [])
        for page in self._client.pages(self._collection, test or ALWAYS, ["id", "vector"], 1000):
            ids = [row["id"] for row in page]
            more = rescored(query_D, ids, matrix(page, self.schema.dimension), self.schema.metric, k)
            found = best(found.ids + more.ids, np.array(found.scores + more.scores, np.float64), k)
        return found

    def _zeros(self, test: str, k: int) -> list[str]:
        both = f"(is_zero == true) and {test or ALWAYS}"
        pages = self._client.pages(self._collection, both, ["id"], MAX_ANSWER_ROWS)
        return sorted(row["id"] for page in pages for row in page)[:k]

    def _number(self, test: str) -> int:
        return int(self._client.query(self._collection, test, ["count(*)"])[0]["count(*)"])

    def _where(self, where: Filter | None) -> str:
        if where is None:
            return ""
        check(where, self.schema.fields)
        return expression(where, self.schema.fields)

    def search_terms(self, queries: Sequence[str], k: int, where: Filter | None = None) -> list[Found]:
        raise InputError("Stores in Milvus have no BM25: search by vectors, or keep the index in a LanceDB folder.")

    def search_sparse(self, queries: SparseVectors, k: int, where: Filter | None = None) -> list[Found]:
        check_sparse_queries(queries, self.schema, k)
        if k > MAX_ANSWER_ROWS:
            raise InputError(f"Milvus gives {MAX_ANSWER_ROWS:,} rows at most, not {k:,}.")
        test, number = self._where(where), min(k + NUM_BEYOND_K, MAX_ANSWER_ROWS)
        found = [Found([], [])] * len(queries)
        for at in np.flatnonzero(np.diff(queries.indptr)).tolist():  # Milvus refuses a query of nothing
            asked_for = [entries(*queries[at])]
            [hits] = self._client.search(self._collection, asked_for, number, test, "IP", "sparse", is_only=False)
            rows = sparse_of([hit["entity"] for hit in hits], queries.dim)
            scores_1N = sparse_scores(queries[at : at + 1], rows)
            [found[at]] = merged([found[at]], [hit["id"] for hit in hits], scores_1N, k)
        return found

    def search_tokens(self, queries: Sequence[Array], k: int, where: Filter | None = None) -> list[Found]:
        raise InputError("Stores in Milvus can't search token vectors: keep the index in a LanceDB folder.")

    def count(self, where: Filter | None = None) -> int:
        return self._number(self._where(where))

    def scan(self, batch_rows: int = 4096, with_vectors: bool = True) -> Iterator[Rows]:
        """Read all rows into a file first, as Milvus keeps no past, then return them."""
        with tempfile.TemporaryFile() as file:
            pages = 0
            columns = FIXED_FIELDS + (self._vector_fields if with_vectors else [])
            for page in self._client.pages(self._collection, ALWAYS, columns, min(batch_rows, 1000)):
                pickle.dump([{name: row[name] for name in columns} for row in page], file)
                pages += 1
            file.seek(0)
            for _ in range(pages):
                yield self._rows(pickle.load(file), with_vectors)

    def compact(self) -> dict[str, Any]:
        """Write out and merge segments, and build a graph once there are enough rows."""
        rows = self.count()
        with self._lock:
            self._client.tidy(self._collection)
            index = self._client.index(self._collection)
            if index == "FLAT" and rows >= self.min_graph_rows:
                self._client.build(self._collection, METRICS[self.schema.metric])
                index = "HNSW: built"
            elif index == "FLAT":
                index = f"none: search is exact below {self.min_graph_rows:,} rows"
        return {"rows": rows, "index": index}

    def info(self) -> dict[str, Any]:
        self._refresh()
        index = self._client.index(self._collection)
        return {
            "engine": f"Milvus {self._client.version}",
            "rows": self.count(),
            "indexes": [] if index == "FLAT" else [index],
        }

    def put_facts(self, facts: Mapping[str, Any]) -> None:
        with self._lock:
            self._write(replace(self._refresh(), facts=dict(facts)))
            self._refresh()

    def close(self) -> None:
        self._client.close()


def _address(location: str, is_new: bool) -> str:
    kind, _, rest = location.partition(":")
    if kind.lower() != "milvus-lite":
        return location[len("milvus+") :]
    if find_spec("milvus_lite") is None:
        raise MissingExtra("milvus-lite", "milvus", "Milvus in a folder")
    folder = Path(rest).expanduser()
    if not rest or (folder.exists() and not folder.is_dir()):
        raise InputError(f"milvus-lite: is followed by a folder, not {rest!r}.")
    if is_new:
        folder.mkdir(parents=True, exist_ok=True)
    asked(Schema(1) if folder.exists() else None, True, location)
    return str(folder / "milvus.db")


def _shown(location: str) -> str:
    return re.sub(r"://[^/?#]*@", "://", location)
