"""Rows, whole columns and filters as PostgreSQL takes them.    N rows, D dimensions.

Metadata are typed columns, not jsonb: a bigint compares exactly and a double as a double (jsonb has only decimals), a
missing key is NULL, so SQL's own three truth values are those of filters.py, and the planner has statistics. The
columns are numbered, m0, m1, ...: a name of a field may be longer than an identifier and hold anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from munjang.errors import InputError
from munjang.stores.arrow import Columns, joined
from munjang.stores.base import Rows, Schema
from munjang.stores.checks import DTYPES, NEEDS_FULL
from munjang.stores.filters import And, Compare, Filter, In, IsNull, Like, Not, Or
from munjang.types import Array, Scalar
from munjang.vectors.sparse import SparseVectors

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection

SQL_TYPES = {"text": 'text COLLATE "C"', "int": "bigint", "float": "double precision", "bool": "boolean"}
TYPE_NAMES = {"text": "text", "int": "int8", "float": "float8", "bool": "bool"}
VECTOR_TYPES = {"float32": "vector", "float16": "halfvec", "binary": "bit"}
WIRE_DTYPES = {"float32": ">f4", "float16": ">f2"}  # most significant byte first
FIXED_COLUMNS = {"id": "text", "document_id": "text", "text": "text", "start_at": "int", "end_at": "int"}
MAX_ID_BYTES = 2048  # an entry of a btree holds 2,700 bytes
CASTS: dict[str, Callable[[Any], Any]] = {"text": str, "int": int, "float": float, "bool": bool}
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"
COPY_NULL = b"\xff\xff\xff\xff"
COPY_BATCH_ROWS = 8192  # joined at once


def kinds(schema: Schema) -> dict[str, str]:
    """Return the columns beside the vectors, with their kinds, in the order of the table."""
    return FIXED_COLUMNS | {f"m{number}": kind for number, kind in enumerate(schema.fields.values())}


def vector_columns(schema: Schema) -> dict[str, str]:
    """Return the columns of vectors and the precision of each."""
    return {"vector": schema.vectors} | ({"full_vector": "float32"} if schema.vectors in NEEDS_FULL else {})


def sparse_column(schema: Schema) -> list[str]:
    """Return the column of sparse vectors, if there is one."""
    return ["sparse"] if schema.sparse_dimension else []


def table_columns(schema: Schema) -> str:
    """Return the columns for CREATE TABLE. Only our own names and numbers come in."""
    columns = [
        f"{name} {SQL_TYPES[kind]}" + (" NOT NULL" if name in FIXED_COLUMNS else "")
        for name, kind in kinds(schema).items()
    ]
    for name, kept in vector_columns(schema).items():
        columns.append(f"{name} {VECTOR_TYPES[kept]}({schema.dimension}) NOT NULL")
    columns += [f"{name} sparsevec({schema.sparse_dimension}) NOT NULL" for name in sparse_column(schema)]
    return ", ".join([*columns, "PRIMARY KEY (id)"])


def condition(node: Filter, schema: Schema) -> tuple[str, list[Any]]:
    """Compile a filter to an SQL expression and the values of its placeholders."""
    match node:
        case And(parts) | Or(parts):
            tests = [condition(part, schema) for part in parts]
            word = " AND " if isinstance(node, And) else " OR "
            return "(" + word.join(text for text, _ in tests) + ")", [value for _, values in tests for value in values]
        case Not(part):
            text, values = condition(part, schema)
            return f"(NOT {text})", values
        case IsNull(name):
            return f"({_column(name, schema)[0]} IS NULL)", []
        case Like(name, prefix):
            return f"starts_with({_column(name, schema)[0]}, %s::text)", [prefix]
        case Compare(name, op, value):
            column, kind = _operand(name, value, schema)
            return f"({column} {op} %s::{kind})", [value]
        case In(name, values):
            by_operand: dict[tuple[str, str], list[Scalar]] = {}
            for value in values:
                by_operand.setdefault(_operand(name, value, schema), []).append(value)
            texts = [f"{column} = ANY(%s::{kind}[])" for column, kind in by_operand]
            return "(" + " OR ".join(texts) + ")", list(by_operand.values())


def _column(name: str, schema: Schema) -> tuple[str, str]:
    if name in ("id", "document_id"):
        return name, "text"
    return f"m{list(schema.fields).index(name)}", schema.fields[name]


def _operand(name: str, value: Scalar, schema: Schema) -> tuple[str, str]:
    """Return the column as it compares with a value, and the value's type: an integer beside a float is a double."""
    column, kind = _column(name, schema)
    if kind == "int" and isinstance(value, float):
        return f"{column}::float8", "float8"
    return column, TYPE_NAMES[kind]


class Bytes(bytes):
    """A vector as it goes over the wire."""


def prepare(connection: "Connection[Any]") -> None:
    """Teach a connection to COPY vectors in binary."""
    for name in (*VECTOR_TYPES.values(), "sparsevec"):
        info = TypeInfo.fetch(connection, name)
        if info is None:
            raise InputError(f"This PostgreSQL has no type {name}: it needs pgvector 0.7 or newer.")
        info.register(connection)
        members = {"oid": info.oid, "format": Format.BINARY, "dump": lambda self, value: bytes(value)}
        connection.adapters.register_dumper(Bytes, type(f"Dump{name}", (Dumper,), members))


def on_the_wire(vectors: Array, kept: str) -> list[Bytes]:
    """Convert the rows of a matrix to pgvector's binary format."""
    head, wire = _wire(vectors, kept)
    return [Bytes(head + row.tobytes()) for row in wire]


def _wire(vectors: Array, kept: str) -> tuple[bytes, Array]:
    """Return what pgvector puts before every vector, and the vectors in its byte order."""
    if kept == "binary":
        return (8 * vectors.shape[1]).to_bytes(4, "big"), np.ascontiguousarray(vectors)
    return vectors.shape[1].to_bytes(2, "big") + b"\0\0", np.ascontiguousarray(vectors.astype(WIRE_DTYPES[kept]))


def off_the_wire(values: Sequence[bytes], kept: str, schema: Schema) -> Array:
    """Make a matrix of what `sent` selects."""
    width = schema.dimension // 8 if kept == "binary" else schema.dimension
    wire = np.dtype(WIRE_DTYPES.get(kept, "u1"))
    flat = np.frombuffer(b"".join(value[4:] for value in values), wire)
    return flat.reshape(len(values), width).astype(DTYPES[kept])


def sparse_on_the_wire(rows: SparseVectors) -> list[Bytes]:
    """Convert rows to pgvector's sparsevec: dimension, number of values, nothing, dimensions, values."""
    heads = [np.array([rows.dim, len(indices), 0], ">i4").tobytes() for indices, _ in rows]
    parts = [indices.astype(">i4").tobytes() + values.astype(">f4").tobytes() for indices, values in rows]
    return [Bytes(head + part) for head, part in zip(heads, parts, strict=True)]


def sparse_off_the_wire(values: Sequence[bytes], dimension: int) -> SparseVectors:
    """Make sparse vectors of what `sparsevec_send` gives."""
    counts = [(len(value) - 12) // 8 for value in values]
    pairs = zip(values, counts, strict=True)
    rows = [(np.frombuffer(v, ">i4", n, 12), np.frombuffer(v, ">f4", n, 12 + 4 * n)) for v, n in pairs]
    return SparseVectors.of([(indices.tolist(), weights.tolist()) for indices, weights in rows], dimension)


def sparse_text(indices: Array, values: Array, dimension: int) -> str:
    """Write one sparse vector as SQL reads it; its dimensions begin at 1 there."""
    entries = (f"{index + 1}:{value!r}" for index, value in zip(indices.tolist(), values.tolist(), strict=True))
    return f"{{{','.join(entries)}}}/{dimension}"


def sent(name: str, kept: str) -> str:
    """Return the expression that selects a column of vectors as bytes."""
    return f"{VECTOR_TYPES[kept]}_send({name})"


def records(rows: Rows, schema: Schema) -> tuple[list[str], list[str], Iterator[Sequence[Any]]]:
    """Return names, types and values of the columns, for COPY: by id, so that two writers wait in one order."""
    assert rows.vectors is not None
    names = column_names(schema)
    types = [TYPE_NAMES[kind] for kind in kinds(schema).values()]
    types += [VECTOR_TYPES[kept] for kept in vector_columns(schema).values()]
    types += ["sparsevec" for _ in sparse_column(schema)]
    full: list[Array] = [] if rows.full_vectors is None else [rows.full_vectors]
    kept = vector_columns(schema).values()
    vectors = [on_the_wire(each, how) for each, how in zip([rows.vectors, *full], kept, strict=False)]
    vectors += [] if rows.sparse is None else [sparse_on_the_wire(rows.sparse)]
    casts = [(name, CASTS[kind]) for name, kind in schema.fields.items()]

    def values() -> Iterator[Sequence[Any]]:
        for at in sorted(range(len(rows)), key=lambda row: rows.ids[row]):
            row = rows.metadata[at]
            metadata = [None if row.get(name) is None else cast(row[name]) for name, cast in casts]
            texts, span = (rows.ids[at], rows.document_ids[at], rows.texts[at]), (rows.starts[at], rows.ends[at])
            yield (*texts, *map(int, span), *metadata, *(column[at] for column in vectors))

    return names, types, values()


def selected(schema: Schema, with_vectors: bool) -> str:
    """Return the columns that `to_rows` reads."""
    vectors = [sent(name, kept) for name, kept in vector_columns(schema).items()]
    vectors += [f"sparsevec_send({name})" for name in sparse_column(schema)]
    return ", ".join([*kinds(schema), *(vectors if with_vectors else [])])


def to_rows(found: Sequence[Sequence[Any]], schema: Schema, with_vectors: bool) -> Rows:
    """Convert selected rows; keys that a row does not have are left out."""
    number = len(FIXED_COLUMNS)
    metadata: list[Mapping[str, Any]] = [
        {name: value for name, value in zip(schema.fields, row[number:], strict=False) if value is not None}
        for row in found
    ]
    columns: list[list[Any]] = [[row[at] for row in found] for at in range(number)]
    arrays = []
    for at, kept in enumerate(vector_columns(schema).values(), number + len(schema.fields)):
        arrays.append(off_the_wire([row[at] for row in found], kept, schema) if with_vectors else None)
    full: Any = arrays[1] if len(arrays) > 1 else None
    rows = Rows(columns[0], columns[1], columns[2], columns[3], columns[4], metadata, arrays[0], full)
    if not with_vectors or not schema.sparse_dimension:
        return rows
    return replace(rows, sparse=sparse_off_the_wire([row[-1] for row in found], schema.sparse_dimension))


def column_names(schema: Schema) -> list[str]:
    """Return all columns in the order of the table."""
    return [*kinds(schema), *vector_columns(schema), *sparse_column(schema)]


def stream(columns: Columns, schema: Schema) -> Iterator[Any]:
    """Encode columns for COPY ... FROM STDIN (FORMAT BINARY).

    A row is the number of its fields, then each field's length and bytes, most significant byte first. Arrow joins the
    columns of these row by row: the bytes of the result are the stream.
    """
    yield COPY_HEADER
    for batch in columns.batches(COPY_BATCH_ROWS):
        rows = _encoded_rows(batch, schema)
        offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset : rows.offset + len(rows) + 1]
        yield memoryview(rows.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
    yield COPY_TRAILER


def _encoded_rows(batch: Columns, schema: Schema) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: list[Any] = [len(column_names(schema)).to_bytes(2, "big")]
    for texts in (batch.ids, batch.document_ids, batch.texts):
        sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)
        columns += [_numbers(sizes, ">i4"), texts]
    columns += [_sized(bytes(8)), (8).to_bytes(4, "big"), _numbers(batch.ends, ">i8")]
    columns += [COPY_NULL * len(schema.fields)]
    matrices: list[Any] = [batch.vectors, batch.full_vectors]
    for vectors, kept in zip(matrices, vector_columns(schema).values(), strict=False):
        columns += _vectors(vectors, kept)
    return joined(*(column.cast(pa.large_binary()) if isinstance(column, pa.Array) else column for column in columns))


def _vectors(vectors: Array, kept: str) -> list[Any]:
    """Return length, pgvector's head and the components of every vector."""
    head, wire = _wire(vectors, kept)
    width = wire.shape[1] * wire.itemsize
    size = (len(head) + width).to_bytes(4, "big")
    return [size + head, _fixed(wire, width)]


def _numbers(values: Array, kind: str) -> "pa.Array":
    wire = np.ascontiguousarray(values.astype(kind))
    return _fixed(wire, wire.itemsize)


def _fixed(wire: Array, width: int) -> "pa.Array":
    """Make a column of so many bytes a row."""
    import pyarrow as pa

    buffer = pa.py_buffer(wire.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(wire), [None, buffer])


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
