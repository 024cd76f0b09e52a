"""LanceDB: a folder on disk, whose every change is one commit.    N rows, Q queries, D dimensions.

Searching is exact until `compact` builds an index of the vectors, from MIN_INDEX_ROWS rows on. Rows that came after it
are searched too. Candidates are rescored with the full vectors, so int8 and binary ones only choose the index: scalar
quantization for int8, RaBitQ's bits for binary.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.expr import col, lit

from munjang.errors import InputError
from munjang.stores.arrow import Columns
from munjang.stores.base import Abilities, Found, Rows, Schema, StoreError
from munjang.stores.beside import check_sparse_queries, check_token_queries, sparse_scores, token_scores
from munjang.stores.checks import agreed, asked, check_columns, check_fields, check_queries, check_rows, check_schema
from munjang.stores.filters import Filter, check
from munjang.stores.lance.kept import Kept
from munjang.stores.lance.rows import (
    arrow_schema,
    columns_to_arrow,
    field_columns,
    from_arrow,
    read_columns,
    rows_of,
    to_arrow,
)
from munjang.stores.lance.search import Nearest, by_words, expression
from munjang.stores.lance.table import Folder, Record, build_index, create_table, engine, missing_indexes, probes
from munjang.types import Array, Floats
from munjang.vectors.sparse import SparseVectors

ABILITIES = Abilities(
    vectors=("float32", "float16", "int8", "binary"),
    metrics=("cosine", "dot", "euclidean"),
    has_terms=True,
    has_sparse=True,
    has_tokens=True,
)
MAX_IDS = 1_000  # in one expression
MAX_FRAGMENTS = 100  # every add leaves one, and a read opens them all
VERSION_LIFETIME = timedelta(hours=1)  # for those who are still reading them
MAX_RECENT_ROWS, MAX_RECENT_CHARS = 1_000, 1_000_000
SQL_TYPES = {"string": "string", "int64": "bigint", "double": "double", "bool": "boolean"}


class LanceStore:
    """A store in a folder."""

    abilities = ABILITIES

    def __init__(self, folder: Folder, record: Record, database: Any) -> None:
        self._folder, self._record, self._database = folder, record, database
        self._lock, self._write_lock = threading.RLock(), threading.RLock()
        self._stamp: tuple[Any, ...] = ()
        self._recent = Recent()
        self._version, self._files = 0, set[Path]()  # as they were before a write
        self._sparse, self._tokens = Kept("sparse", sparse_scores), Kept("tokens", token_scores)
        with engine(f"The store in {folder.path} can't be opened"):
            self._table = database.open_table(folder.name)
            # a handle waits for its own writes, so readers have another
            self._writer = database.open_table(folder.name)
        self._refresh()

    @classmethod
    def open(cls, location: str, schema: Schema | None, create: bool, name: str) -> "LanceStore":
        """Open the store of this name in a folder, or create it."""
        folder = Folder(Path(location), name)
        record = folder.read()
        if record is None:
            new = asked(schema, create, location)
            check_schema(new, ABILITIES, "LanceDB")
            with folder.writing():
                record = folder.read() or create_table(folder, new)  # another process may have been faster
        agreed(record.schema, schema, location)
        with engine(f"The folder {location} can't be opened"):
            database = lancedb.connect(folder.path)
        return cls(folder, record, database)

    @property
    def schema(self) -> Schema:
        return self._record.schema

    def _refresh(self) -> Any:
        """Return the table as it is now, whoever changed it last."""
        with self._lock:
            stamp = self._folder.stamp()
            if stamp != self._stamp:
                record = self._folder.read()
                if record is None:
                    raise StoreError(f"The store in {self._folder.path} is gone.")
                with engine("LanceDB can't read the store"):
                    self._table.checkout_latest()
                    indexes = {index.columns[0] for index in self._table.list_indices()}
                self._record, self._stamp = record, stamp
                self._num_probes = probes(record.num_trained) if "vector" in indexes else 0
            return self._table

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        with self._write_lock, self._folder.writing():
            self._refresh()
            with engine("LanceDB can't write"):
                self._writer.checkout_latest()
                self._drop_strays(self._writer)
                self._version, self._files = self._writer.version, self._folder.files()
                try:
                    yield self._writer
                finally:
                    self._take_back_unfinished()

    def _take_back_unfinished(self) -> None:
        """Return to the version before this write where one of its files has no end; nothing can read that one."""
        if torn := self._folder.unfinished(self._files):
            for path in torn:
                path.unlink()  # on a full disk this makes room
            if self._writer.version > self._version:
                self._writer.restore(self._version)
            raise StoreError(f"LanceDB can't write {torn[0].name} to its end; make room on the disk and try again.")

    def _drop_strays(self, table: Any) -> None:
        """Drop columns of a run that died while it added fields: rows without them would be refused."""
        strays = set(table.schema.names) - set(arrow_schema(self.schema, self._record.numbers).names)
        if strays:
            table.drop_columns(sorted(strays))

    def _expression(self, where: Filter) -> Any:
        check(where, self.schema.fields)
        return expression(where, self._record.numbers, self.schema.fields)

    def extend(self, fields: Mapping[str, str]) -> None:
        with self._writing() as table:
            new = check_fields(fields, self.schema.fields)
            if not new:
                return
            numbers = {name: number for number, name in enumerate(new, len(self.schema.fields))}
            columns = field_columns(new, numbers)
            nulls = {column.name: f"cast(null as {SQL_TYPES[str(column.type)]})" for column in columns}
            table.add_columns({name: "false" if name.startswith("has_") else null for name, null in nulls.items()})
            schema = replace(self.schema, fields={**self.schema.fields, **new})
            self._write(replace(self._record, schema=schema, numbers={**self._record.numbers, **numbers}))

    def _write(self, record: Record) -> None:
        self._take_back_unfinished()  # the record is of what is stored
        self._folder.write(record)
        self._record = record

    def put_facts(self, facts: Mapping[str, Any]) -> None:
        with self._writing():
            self._write(replace(self._record, schema=replace(self.schema, facts=dict(facts))))

    def add(self, rows: Rows) -> None:
        with self._writing() as table:
            check_rows(rows, self.schema, ABILITIES)
            known = set(self._select(table, "id", rows.ids, ["id"]).column("id").to_pylist()) if len(rows) else set()
            for row_id in rows.ids:
                if row_id in known:
                    raise InputError(f"The id {row_id!r} exists already; upsert replaces it.")
            if len(rows):
                table.add(self._arrow(rows))
                self._tidy(table)

    def upsert(self, rows: Rows) -> None:
        with self._writing() as table:
            check_rows(rows, self.schema, ABILITIES)
            if len(rows):
                _merge(table, self._arrow(rows))
                self._tidy(table)

    def load(self, columns: Columns, is_new: bool) -> None:
        with self._writing() as table:
            check_columns(columns, self.schema)
            rows = columns_to_arrow(columns, self.schema, self._record.numbers)
            if is_new:
                table.add(rows)
            elif len(columns):
                _merge(table, rows)
            self._tidy(table)

    def _arrow(self, rows: Rows) -> Any:
        return to_arrow(rows, self.schema, self._record.numbers)

    def _tidy(self, table: Any) -> None:
        if table.stats()["fragment_stats"]["num_small_fragments"] > MAX_FRAGMENTS:
            table.optimize(cleanup_older_than=VERSION_LIFETIME)

    def delete(self, document_ids: Sequence[str]) -> int:
        return self._delete("document_id", document_ids)

    def remove(self, ids: Sequence[str]) -> int:
        return self._delete("id", ids)

    def _delete(self, key: str, values: Sequence[str]) -> int:
        """Delete rows in one commit: by one expression of all values, however many."""
        wanted = sorted(set(values))
        with self._writing() as table:
            num_rows = self._select(table, key, wanted, ["has_id"]).num_rows if wanted else 0
            if num_rows:
                table.delete(col(key).isin([lit(value) for value in wanted]))
        return num_rows

    def _select(self, table: Any, key: str, values: Sequence[str], columns: list[str]) -> Any:
        """Read these columns of the rows whose id or document is listed."""

        tables, values = [], list(dict.fromkeys(values))
        for start in range(0, max(len(values), 1), MAX_IDS):
            expression = col(key).isin([lit(value) for value in values[start : start + MAX_IDS] or [""]])
            tables.append(table.search().where(expression).select(columns).to_arrow())
        return pa.concat_tables(tables)

    def get(self, ids: Sequence[str], with_vectors: bool = False) -> Rows:
        table = self._refresh()
        if not with_vectors and (recent := self._recent.get(self._stamp, ids)) is not None:
            return rows_of(list(ids), [text for text, _ in recent], [rest for _, rest in recent])
        schema = self.schema
        with engine("LanceDB can't read"):
            read = self._select(table, "id", ids, read_columns(schema, with_vectors))
        row_of = {row_id: row for row, row_id in enumerate(read.column("id").to_pylist())}
        wanted = np.array([row_of[row_id] for row_id in ids if row_id in row_of], np.int64)
        return from_arrow(read.take(wanted), schema, with_vectors)

    def passages(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        table = self._refresh()
        starts: dict[str, list[tuple[int, str]]] = {document_id: [] for document_id in document_ids}
        with engine("LanceDB can't read"):
            rows = self._select(table, "document_id", document_ids, ["id", "rest"]).to_pylist()
        for row in rows:
            document_id, start, *_ = json.loads(row["rest"])
            starts[document_id].append((start, row["id"]))
        return {document_id: [row_id for _, row_id in sorted(pairs)] for document_id, pairs in starts.items()}

    def count(self, where: Filter | None = None) -> int:
        table = self._refresh()
        with engine("LanceDB can't read"):
            if where is None:
                return int(table.count_rows())
            query = table.search().where(self._expression(where)).select(["has_id"])
            return sum(batch.num_rows for batch in query.to_batches())

    def scan(self, batch_rows: int = 4096, with_vectors: bool = True) -> Iterator[Rows]:
        table = self._refresh()
        schema = self.schema
        with engine("LanceDB can't read"):  # now, not when the first batch is asked for
            query = table.search().select(read_columns(schema, with_vectors))
            batches = query.to_batches(batch_size=batch_rows)
        return (
            from_arrow(batch.slice(start, batch_rows), schema, with_vectors)
            for batch in batches
            for start in range(0, batch.num_rows, batch_rows)
        )

    def search(self, queries_QD: Floats, k: int, where: Filter | None = None) -> list[Found]:
        table = self._refresh()
        stamp = self._stamp  # before anything is read
        queries_QD = check_queries(queries_QD, self.schema, k)
        expression = None if where is None else self._expression(where)
        # whole rows: they are asked for next, and cost little more than their ids
        columns = read_columns(self.schema, False) if len(queries_QD) * k <= MAX_RECENT_ROWS else ["id"]

        def keep(rows: Any) -> None:
            if len(columns) > 1:
                self._recent.put(stamp, *(rows.column(name).to_pylist() for name in columns))

        with engine("LanceDB can't search"):
            search = Nearest(table, self.schema, self._num_probes, expression, columns, keep)
            return [search(query, k) for query in queries_QD]

    def search_terms(self, queries: Sequence[str], k: int, where: Filter | None = None) -> list[Found]:
        table = self._refresh()
        check_queries(np.zeros((0, 0), np.float32), self.schema, k)
        expression = None if where is None else self._expression(where)
        with engine("LanceDB can't search"):
            return [by_words(table, query, k, expression) for query in queries]

    def search_sparse(self, queries: SparseVectors, k: int, where: Filter | None = None) -> list[Found]:
        check_sparse_queries(queries, self.schema, k)
        return self._search_kept(self._sparse, queries, k, where)

    def search_tokens(self, queries: Sequence[Array], k: int, where: Filter | None = None) -> list[Found]:
        check_token_queries(queries, self.schema, k)
        return self._search_kept(self._tokens, queries, k, where)

    def _search_kept(self, kept: Kept, queries: Any, k: int, where: Filter | None) -> list[Found]:
        table = self._refresh()
        stamp, expression = self._stamp, None if where is None else self._expression(where)
        with engine("LanceDB can't search"):
            return kept.search(table, self.schema, stamp, queries, k, expression)

    def compact(self) -> dict[str, Any]:
        with self._writing() as table:
            before = table.stats()["fragment_stats"]["num_fragments"]
            num_rows = int(table.count_rows())
            built = missing_indexes(table, self._record, num_rows)
            # before it is built: a search that looks into too many partitions of an old one does no harm
            if "vector" in built:
                self._write(replace(self._record, num_trained=num_rows))
            for column in built:
                build_index(table, column, self.schema, num_rows)
            table.optimize(cleanup_older_than=VERSION_LIFETIME)
            after = table.stats()["fragment_stats"]["num_fragments"]
        return {"rows": num_rows, "fragments_before": before, "fragments_after": after, "indexes_built": built}

    def info(self) -> dict[str, Any]:
        table = self._refresh()
        with engine("LanceDB can't read"):
            files = [path.stat().st_size for path in self._folder.table_path.rglob("*") if path.is_file()]
            indexes = [f"{index.columns[0]} ({index.index_type})" for index in table.list_indices()]
            fragments = table.stats()["fragment_stats"]["num_fragments"]
        return {
            "engine": "LanceDB",
            "rows": int(table.count_rows()),
            "bytes": sum(files),
            "indexes": sorted(indexes),
            "fragments": fragments,
            "version": table.version,
        }

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""


def _merge(table: Any, rows: pa.Table) -> None:
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


class Recent:
    """Rows that a search has read: they are asked for next, and finding ten of a million by their ids takes 3 ms.

    Texts and JSON by id, as they were at one state of the table; the oldest go first.
    """

    def __init__(self) -> None:
        self._lock, self._stamp = threading.Lock(), tuple[Any, ...]()
        self._rows: dict[str, tuple[str, str]] = {}
        self._num_chars = 0

    def put(self, stamp: tuple[Any, ...], ids: Sequence[str], texts: Sequence[str], rest: Sequence[str]) -> None:
        """Keep rows that were read when the table had this stamp or a later one; forget those of another stamp."""
        with self._lock:
            if stamp != self._stamp:
                self._rows, self._num_chars, self._stamp = {}, 0, stamp
            for row_id, *row in zip(ids, texts, rest, strict=True):
                self._drop(row_id)
                self._rows[row_id] = (row[0], row[1])
                self._num_chars += len(row[0]) + len(row[1])
            while len(self._rows) > MAX_RECENT_ROWS or self._num_chars > MAX_RECENT_CHARS:
                self._drop(next(iter(self._rows)))

    def _drop(self, row_id: str) -> None:
        self._num_chars -= sum(map(len, self._rows.pop(row_id, ())))

    def get(self, stamp: tuple[Any, ...], ids: Sequence[str]) -> list[tuple[str, str]] | None:
        """Return text and JSON of each row; None where one is not known, or the table has changed."""
        with self._lock:
            if stamp != self._stamp or not all(row_id in self._rows for row_id in ids):
                return None
            return [self._rows[row_id] for row_id in ids]
