"""PostgreSQL with pgvector.    N rows, Q queries, D dimensions.

One table a store, and one table of ours that says what each holds. Every call is one transaction. Search is exact
until `compact` builds an HNSW graph, which pgvector has for up to 2,000 dimensions (4,000 as half floats);
candidates are always rescored from the stored vectors.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.errors import UniqueViolation

from munjang.errors import InputError
from munjang.stores.arrow import Columns
from munjang.stores.base import Abilities, Found, Rows, Schema, StoreError
from munjang.stores.beside import check_sparse_queries, merged, sparse_scores
from munjang.stores.checks import agreed, asked, check_columns, check_fields, check_queries, check_rows, check_schema
from munjang.stores.filters import Filter, check
from munjang.stores.postgres.connections import SCHEMA_LOCK, Connections, explained, one, shown
from munjang.stores.postgres.rows import (
    MAX_ID_BYTES,
    SQL_TYPES,
    column_names,
    condition,
    off_the_wire,
    records,
    selected,
    sent,
    sparse_off_the_wire,
    sparse_text,
    stream,
    table_columns,
    to_rows,
    vector_columns,
)
from munjang.stores.scoring import rescored
from munjang.types import Array, Floats
from munjang.vectors.sparse import SparseVectors

ABILITIES = Abilities(
    vectors=("float32", "float16", "binary"),  # pgvector has no type of int8
    metrics=("cosine", "dot", "euclidean"),
    max_dimension=16_000,
    max_id_bytes=MAX_ID_BYTES,
    has_sparse=True,
)
FORMAT = 1
CREATE_CATALOG = """CREATE TABLE IF NOT EXISTS munjang_stores (
    name text COLLATE "C" PRIMARY KEY, number integer GENERATED ALWAYS AS IDENTITY, format integer NOT NULL,
    schema json NOT NULL, facts json NOT NULL)"""
OPERATORS = {"cosine": ("<=>", "cosine"), "dot": ("<#>", "ip"), "euclidean": ("<->", "l2")}
MAX_GRAPH_DIMENSIONS = {"vector": 2_000, "halfvec": 4_000, "bit": 64_000}
MIN_EF, MAX_EF = 100, 1_000  # of hnsw.ef_search: what finds the ten nearest, and pgvector's limit
NUM_BEYOND_K = 16  # candidates: pgvector sums in single precision, so the last ones may stand in another order
MIN_GRAPH_ROWS = 5_000  # reading 30,000 rows of 384 dimensions takes 55 ms, a graph of them 2 ms
MAX_FLOAT16 = 65_504
CREATE_INCOMING = "CREATE TEMPORARY TABLE incoming (LIKE {}) ON COMMIT DROP"


class PostgresStore:
    """A store in a PostgreSQL database."""

    abilities = ABILITIES

    def __init__(
        self, location: str, schema: Schema | None, create: bool, name: str, min_graph_rows: int = MIN_GRAPH_ROWS
    ) -> None:
        self.location, self.name, self.min_graph_rows = location, name, min_graph_rows
        self._connections = Connections(location)
        if schema is not None:
            check_schema(schema, ABILITIES, "PostgreSQL")
        with explained(name), self._connections.take() as connection, connection.transaction():
            # IF NOT EXISTS alone is not safe for two
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
            has_catalog = one(connection, "SELECT to_regclass('munjang_stores')") is not None
            recorded = self._read(connection) if has_catalog else None
            if recorded is None:
                self.schema = self._make(connection, asked(schema, create, shown(location)))
            else:
                self.schema = agreed(recorded, schema, shown(location))

    @classmethod
    def open(cls, location: str, schema: Schema | None, create: bool, name: str) -> "PostgresStore":
        """Open the store of that name, or create it."""
        return cls(location, schema, create, name)

    def _make(self, connection: Connection[Any], schema: Schema) -> Schema:
        connection.execute(CREATE_CATALOG)
        number = one(
            connection,
            "INSERT INTO munjang_stores (name, format, schema, facts) VALUES (%s, %s, %s, %s) RETURNING number",
            [self.name, FORMAT, _packed(schema), json.dumps(dict(schema.facts))],
        )
        self._table = f"munjang_rows_{int(number)}"
        connection.execute(f"CREATE TABLE {self._table} ({table_columns(schema)})")
        connection.execute(f"CREATE INDEX {self._table}_document ON {self._table} (document_id)")
        return schema

    def _read(self, connection: Connection[Any]) -> Schema | None:
        statement = "SELECT number, format, schema, facts FROM munjang_stores WHERE name = %s"
        found = connection.execute(statement, [self.name]).fetchone()
        if found is None:
            return None
        number, written, schema, facts = found
        if written > FORMAT:
            raise StoreError(f"The store {self.name!r} has format {written}; this Munjang reads {FORMAT}. Update it.")
        self._table = f"munjang_rows_{int(number)}"
        return Schema(**{**schema, "fields": dict(schema["fields"])}, facts=facts)

    def _refresh(self, connection: Connection[Any]) -> Schema:
        schema = self._read(connection)
        if schema is None:
            raise StoreError(f"The store {self.name!r} was dropped while it was open.")
        self.schema = schema
        return schema

    @contextmanager
    def _transaction(self) -> Iterator[Connection[Any]]:
        """Begin a transaction, all or nothing, with the schema as others may have changed it."""
        with explained(self.name), self._connections.take() as connection, connection.transaction():
            self._refresh(connection)
            yield connection

    def extend(self, fields: Mapping[str, str]) -> None:
        with self._transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
            known = self._refresh(connection)
            new = check_fields(fields, known.fields)
            if not new:
                return
            for number, kind in enumerate(new.values(), len(known.fields)):
                connection.execute(f"ALTER TABLE {self._table} ADD COLUMN m{number} {SQL_TYPES[kind]}")
            schema = replace(known, fields={**known.fields, **new})
            connection.execute("UPDATE munjang_stores SET schema = %s WHERE name = %s", [_packed(schema), self.name])
        self.schema = schema

    def add(self, rows: Rows) -> None:
        try:
            with self._transaction() as connection:
                check_rows(rows, self.schema, ABILITIES)
                self._copy(connection, rows, self._table)
        except StoreError as error:
            if not isinstance(error.__cause__, UniqueViolation):
                raise
            known = self.get(rows.ids).ids
            raise InputError(f"The id {(known or rows.ids)[0]!r} exists already; upsert replaces it.") from None

    def upsert(self, rows: Rows) -> None:
        with self._transaction() as connection:
            check_rows(rows, self.schema, ABILITIES)
            connection.execute(CREATE_INCOMING.format(self._table))
            self._merge(connection, self._copy(connection, rows, "incoming"))

    def load(self, columns: Columns, is_new: bool) -> None:
        with self._transaction() as connection:
            check_columns(columns, self.schema)
            names, table = column_names(self.schema), self._table if is_new else "incoming"
            if not is_new:
                connection.execute(CREATE_INCOMING.format(self._table))
            with connection.cursor().copy(f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)") as copy:
                for data in stream(columns, self.schema):
                    copy.write(data)
            if not is_new:
                self._merge(connection, names)

    def _merge(self, connection: Connection[Any], names: list[str]) -> None:
        """Replace rows by those of the same id in the table beside."""
        changes = ", ".join(f"{name} = excluded.{name}" for name in names)
        columns = ", ".join(names)
        connection.execute(
            f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM incoming ORDER BY id"
            f" ON CONFLICT (id) DO UPDATE SET {changes}"
        )

    def _copy(self, connection: Connection[Any], rows: Rows, table: str) -> list[str]:
        names, types, values = records(rows, self.schema)
        with connection.cursor().copy(f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for record in values:
                copy.write_row(record)
        return names

    def delete(self, document_ids: Sequence[str]) -> int:
        with self._transaction() as connection:
            statement = f"DELETE FROM {self._table} WHERE document_id = ANY(%s::text[])"
            return connection.execute(statement, [list(document_ids)]).rowcount

    def remove(self, ids: Sequence[str]) -> int:
        with self._transaction() as connection:
            statement = f"DELETE FROM {self._table} WHERE id = ANY(%s::text[])"
            return connection.execute(statement, [list(ids)]).rowcount

    def get(self, ids: Sequence[str], with_vectors: bool = False) -> Rows:
        with self._transaction() as connection:
            columns = selected(self.schema, with_vectors)
            found = connection.execute(
                f"SELECT {columns} FROM {self._table} WHERE id = ANY(%s::text[])", [list(ids)]
            ).fetchall()
        by_id = {row[0]: row for row in found}
        return to_rows([by_id[each] for each in ids if each in by_id], self.schema, with_vectors)

    def passages(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        ids_of: dict[str, list[str]] = {document_id: [] for document_id in document_ids}
        with self._transaction() as connection:
            statement = f"SELECT document_id, id FROM {self._table} WHERE document_id = ANY(%s::text[])"
            for document_id, row_id in connection.execute(statement + " ORDER BY start_at, id", [list(ids_of)]):
                ids_of[document_id].append(row_id)
        return ids_of

    def search(self, queries_QD: Floats, k: int, where: Filter | None = None) -> list[Found]:
        queries_QD = check_queries(queries_QD, self.schema, k)
        with self._transaction() as connection:
            test, values = self._where(where)
            has_graph = self._graph(connection) is not None
            return [self._nearest(connection, query, k, test, values, has_graph) for query in queries_QD]

    def _nearest(
        self, connection: Connection[Any], query_D: Floats, k: int, test: str, values: list[Any], has_graph: bool
    ) -> Found:
        schema, fits = self.schema, float(np.abs(query_D).max()) <= MAX_FLOAT16
        name, kept = list(vector_columns(schema).items())[-1]
        number = min(k + NUM_BEYOND_K, 2**31 - 1)
        columns, found = f"id, {sent(name, kept)}", []
        if has_graph and fits:
            wide = 8 * k + 100 if schema.vectors == "binary" else number  # signs alone say little about order
            connection.execute(f"SET LOCAL hnsw.ef_search = {min(max(wide, MIN_EF), MAX_EF)}")
            connection.execute("SET LOCAL hnsw.iterative_scan = 'relaxed_order'")
            order = f"ORDER BY {_indexed(schema)} {_operator(schema)} %s::{_indexed_type(schema)}"
            statement = f"SELECT {columns} FROM {self._table} {test} {order} LIMIT {wide}"
            found = connection.execute(statement, [*values, _literal(query_D, schema)]).fetchall()
        if len(found) < k:  # a graph leaves out zero vectors and ends early under filters that keep next to nothing
            sign = OPERATORS[schema.metric][0]
            distance = f"coalesce(nullif({name}::vector {sign} %s::vector, 'NaN'), 1)"  # a zero vector: cosine 0
            statement = f"SELECT {columns} FROM {self._table} {test} ORDER BY {distance}, id LIMIT {number}"
            found = connection.execute(statement, [*values, _text(query_D)]).fetchall()
        vectors = off_the_wire([row[1] for row in found], kept, schema)
        return rescored(query_D, [row[0] for row in found], vectors, schema.metric, k)

    def _where(self, where: Filter | None) -> tuple[str, list[Any]]:
        if where is None:
            return "", []
        check(where, self.schema.fields)
        test, values = condition(where, self.schema)
        return f"WHERE {test}", values

    def search_terms(self, queries: Sequence[str], k: int, where: Filter | None = None) -> list[Found]:
        raise InputError(
            "PostgreSQL has no BM25 of its own: search by vectors, or keep this index in a LanceDB folder."
        )

    def search_sparse(self, queries: SparseVectors, k: int, where: Filter | None = None) -> list[Found]:
        check_sparse_queries(queries, self.schema, k)
        with self._transaction() as connection:
            test, values = self._where(where)
            return [self._by_sparse(connection, queries[row : row + 1], k, test, values) for row in range(len(queries))]

    def _by_sparse(
        self, connection: Connection[Any], query: SparseVectors, k: int, test: str, values: list[Any]
    ) -> Found:
        """Read every row: pgvector's graph of sparse vectors leaves out those that have more than 1,000 values."""
        [(indices, weights)] = query
        literal, number = sparse_text(indices, weights, query.dim), min(k + NUM_BEYOND_K, 2**31 - 1)
        shares = f"{test} {'AND' if test else 'WHERE'} sparse <#> %s::sparsevec < 0"  # a negative product
        statement = f"SELECT id, sparsevec_send(sparse) FROM {self._table} {shares}"
        statement += f" ORDER BY sparse <#> %s::sparsevec, id LIMIT {number}"
        found = connection.execute(statement, [*values, literal, literal]).fetchall()
        rows = sparse_off_the_wire([row[1] for row in found], query.dim)
        return merged([Found([], [])], [row[0] for row in found], sparse_scores(query, rows), k)[0]

    def search_tokens(self, queries: Sequence[Array], k: int, where: Filter | None = None) -> list[Found]:
        raise InputError("PostgreSQL can't search token vectors: keep this index in a LanceDB folder.")

    def count(self, where: Filter | None = None) -> int:
        with self._transaction() as connection:
            test, values = self._where(where)
            return int(one(connection, f"SELECT count(*) FROM {self._table} {test}", values))

    def scan(self, batch_rows: int = 4096, with_vectors: bool = True) -> Iterator[Rows]:
        with self._transaction() as connection, connection.cursor(name="scan") as cursor:
            schema = self.schema
            cursor.execute(f"SELECT {selected(schema, with_vectors)} FROM {self._table} ORDER BY id")
            while found := cursor.fetchmany(batch_rows):
                yield to_rows(found, schema, with_vectors)

    def compact(self) -> dict[str, Any]:
        """Vacuum, and build the graph once there are enough rows."""
        with self._transaction() as connection:
            graph = self._graph(connection)
            rows = int(one(connection, f"SELECT count(*) FROM {self._table}"))
        done: dict[str, Any] = {"rows": rows}
        with explained(self.name), self._connections.take() as connection:  # these two can't run in a transaction
            limit = MAX_GRAPH_DIMENSIONS[_indexed_type(self.schema).partition("(")[0]]
            if self.schema.dimension > limit:
                done["index"] = f"none: HNSW takes up to {limit:,} dimensions; search stays exact"
            elif graph is None and rows >= self.min_graph_rows:
                connection.execute(f"DROP INDEX IF EXISTS {self._table}_graph")  # what an interrupted build left
                connection.execute(
                    f"CREATE INDEX CONCURRENTLY {self._table}_graph ON {self._table}"
                    f" USING hnsw ({_indexed(self.schema)} {_operators(self.schema)})"
                )
                done["index"] = "hnsw: built"
            else:
                done["index"] = graph or f"none: search is exact below {self.min_graph_rows:,} rows"
            connection.execute(f"VACUUM (ANALYZE) {self._table}")
        return done

    def _graph(self, connection: Connection[Any]) -> str | None:
        statement = "SELECT 'hnsw' FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"
        return one(connection, statement, [f"{self._table}_graph"])

    def info(self) -> dict[str, Any]:
        with self._transaction() as connection:
            version = one(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            graph = self._graph(connection)
            return {
                "engine": f"PostgreSQL {connection.info.server_version // 10_000}, pgvector {version}",
                "rows": int(one(connection, f"SELECT count(*) FROM {self._table}")),
                "bytes": int(one(connection, "SELECT pg_total_relation_size(%s::regclass)", [self._table])),
                "indexes": [] if graph is None else [graph],
            }

    def put_facts(self, facts: Mapping[str, Any]) -> None:
        with self._transaction() as connection:
            statement = "UPDATE munjang_stores SET facts = %s WHERE name = %s"
            connection.execute(statement, [json.dumps(dict(facts)), self.name])
        self.schema = replace(self.schema, facts=dict(facts))

    def close(self) -> None:
        self._connections.close()


def _packed(schema: Schema) -> str:
    """Encode as JSON; `json` columns keep the order of the fields, which numbers their columns."""
    kept = asdict(replace(schema, fields=dict(schema.fields), facts={}))
    del kept["facts"]
    return json.dumps({**kept, "fields": list(schema.fields.items())})


def _indexed_type(schema: Schema) -> str:
    """Return the type that the graph indexes."""
    if schema.vectors == "binary":
        return f"bit({schema.dimension})"
    is_half = schema.vectors == "float16" or schema.dimension > MAX_GRAPH_DIMENSIONS["vector"]
    return f"{'halfvec' if is_half else 'vector'}({schema.dimension})"


def _indexed(schema: Schema) -> str:
    is_cast = schema.vectors == "float32" and schema.dimension > MAX_GRAPH_DIMENSIONS["vector"]
    return f"(vector::{_indexed_type(schema)})" if is_cast else "vector"


def _operator(schema: Schema) -> str:
    return "<~>" if schema.vectors == "binary" else OPERATORS[schema.metric][0]


def _operators(schema: Schema) -> str:
    kind = _indexed_type(schema).partition("(")[0]
    return "bit_hamming_ops" if kind == "bit" else f"{kind}_{OPERATORS[schema.metric][1]}_ops"


def _literal(query_D: Floats, schema: Schema) -> str:
    return "".join("1" if value > 0 else "0" for value in query_D) if schema.vectors == "binary" else _text(query_D)


def _text(query_D: Floats) -> str:
    return json.dumps(query_D.tolist())
