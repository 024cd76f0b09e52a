"""Rows and filters as PostgreSQL takes them.    N rows, D components.

Metadata are typed columns, not jsonb: a bigint compares exactly and a double as a double (jsonb has only decimals), a
missing key is NULL, so SQL's own three truth values are those of filters.py, and the planner has statistics. The
columns are numbered, m0, m1, ...: a name of a field may be longer than an identifier and hold anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import InputError
from munjang.stores.base import Rows, Schema
from munjang.stores.checks import DTYPES, NEEDS_FULL
from munjang.stores.filters import And, Compare, Filter, In, IsNull, Like, Not, Or
from munjang.types import Array, Scalar

if TYPE_CHECKING:
    from psycopg import Connection

TYPES = {"text": 'text COLLATE "C"', "int": "bigint", "float": "double precision", "bool": "boolean"}
OIDS = {"text": "text", "int": "int8", "float": "float8", "bool": "bool"}
VECTOR_TYPES = {"float32": "vector", "float16": "halfvec", "binary": "bit"}
WIRE = {"float32": ">f4", "float16": ">f2"}  # components, most significant byte first
FIXED = {"id": "text", "document_id": "text", "text": "text", "start_at": "int", "end_at": "int"}
MAX_ID_BYTES = 2048  # an entry of a btree holds 2,700 bytes
MAX_FIELDS = 1500  # a table has 1,600 columns


def kinds(schema: Schema) -> dict[str, str]:
    """The columns beside the vectors, with their kinds, in the order of the table."""
    return FIXED | {f"m{number}": kind for number, kind in enumerate(schema.fields.values())}


def vector_columns(schema: Schema) -> dict[str, str]:
    """The columns with vectors and how each is kept."""
    return {"vector": schema.vectors} | ({"full_vector": "float32"} if schema.vectors in NEEDS_FULL else {})


def table_columns(schema: Schema) -> str:
    """What stands in CREATE TABLE. Only our own names and numbers come in."""
    columns = [f"{name} {TYPES[kind]}" + (" NOT NULL" if name in FIXED else "") for name, kind in kinds(schema).items()]
    for name, kept in vector_columns(schema).items():
        columns.append(f"{name} {VECTOR_TYPES[kept]}({schema.dimension}) NOT NULL")
    return ", ".join([*columns, "PRIMARY KEY (id)"])


def condition(node: Filter, schema: Schema) -> tuple[str, list[Any]]:
    """A filter as an SQL expression and the values bound to its places."""
    match node:
        case And(parts) | Or(parts):
            made = [condition(part, schema) for part in parts]
            word = " AND " if isinstance(node, And) else " OR "
            return "(" + word.join(text for text, _ in made) + ")", [value for _, values in made for value in values]
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
            found: dict[tuple[str, str], list[Scalar]] = {}
            for value in values:
                found.setdefault(_operand(name, value, schema), []).append(value)
            tests = [f"{column} = ANY(%s::{kind}[])" for column, kind in found]
            return "(" + " OR ".join(tests) + ")", list(found.values())


def _column(name: str, schema: Schema) -> tuple[str, str]:
    if name in ("id", "document_id"):
        return name, "text"
    return f"m{list(schema.fields).index(name)}", schema.fields[name]


def _operand(name: str, value: Scalar, schema: Schema) -> tuple[str, str]:
    """The column as it compares with a value, and the type of that: a whole number beside a float is a double."""
    column, kind = _column(name, schema)
    if kind == "int" and isinstance(value, float):
        return f"{column}::float8", "float8"
    return column, OIDS[kind]


class Bytes(bytes):
    """A vector as it goes over the wire."""


def prepare(connection: "Connection[Any]") -> None:
    """Teach a connection to COPY vectors in binary."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
    from psycopg.types import TypeInfo

    for name in VECTOR_TYPES.values():
        info = TypeInfo.fetch(connection, name)
        if info is None:
            raise InputError(f"This PostgreSQL has no type {name}: it needs pgvector 0.7 or newer.")
        info.register(connection)
        members = {"oid": info.oid, "format": Format.BINARY, "dump": lambda self, value: bytes(value)}
        connection.adapters.register_dumper(Bytes, type(f"Dump{name}", (Dumper,), members))


def on_the_wire(vectors: Array, kept: str) -> list[Bytes]:
    """Rows of a matrix in pgvector's binary format."""
    if kept == "binary":
        head = (8 * vectors.shape[1]).to_bytes(4, "big")
        return [Bytes(head + row.tobytes()) for row in vectors]
    head = vectors.shape[1].to_bytes(2, "big") + b"\0\0"
    return [Bytes(head + row.tobytes()) for row in vectors.astype(WIRE[kept])]


def off_the_wire(values: Sequence[bytes], kept: str, schema: Schema) -> Array:
    """A matrix from what `sent` selects."""
    width = schema.dimension // 8 if kept == "binary" else schema.dimension
    wire = np.dtype(WIRE.get(kept, "u1"))
    flat = np.frombuffer(b"".join(value[4:] for value in values), wire)
    return flat.reshape(len(values), width).astype(DTYPES[kept])


def sent(name: str, kept: str) -> str:
    """The expression that gives a column of vectors as bytes."""
    return f"{VECTOR_TYPES[kept]}_send({name})"


def records(rows: Rows, schema: Schema) -> tuple[list[str], list[str], Iterator[Sequence[Any]]]:
    """Names, types and values of the columns, for COPY. By id, so that two writers wait for each other in one order."""
    assert rows.vectors is not None
    for row_id in [*rows.ids, *rows.document_ids]:
        if len(row_id.encode()) > MAX_ID_BYTES:
            raise InputError(
                f"The id {row_id!r:.40} has more than the {MAX_ID_BYTES:,} bytes that PostgreSQL can index."
            )
    names = list(kinds(schema)) + list(vector_columns(schema))
    types = [OIDS[kind] for kind in kinds(schema).values()]
    types += [VECTOR_TYPES[kept] for kept in vector_columns(schema).values()]
    full: list[Array] = [] if rows.full_vectors is None else [rows.full_vectors]
    kept = vector_columns(schema).values()
    vectors = [on_the_wire(each, how) for each, how in zip([rows.vectors, *full], kept, strict=False)]
    casts = [(name, CASTS[kind]) for name, kind in schema.fields.items()]

    def values() -> Iterator[Sequence[Any]]:
        for at in sorted(range(len(rows)), key=lambda place: rows.ids[place]):
            given = rows.metadata[at]
            metadata = [None if given.get(name) is None else cast(given[name]) for name, cast in casts]
            place = (int(rows.starts[at]), int(rows.ends[at]))
            yield (
                rows.ids[at],
                rows.document_ids[at],
                rows.texts[at],
                *place,
                *metadata,
                *(each[at] for each in vectors),
            )

    return names, types, values()


CASTS: dict[str, Callable[[Any], Any]] = {"text": str, "int": int, "float": float, "bool": bool}


def selected(schema: Schema, with_vectors: bool) -> str:
    """The columns that `to_rows` reads."""
    vectors = [sent(name, kept) for name, kept in vector_columns(schema).items()] if with_vectors else []
    return ", ".join([*kinds(schema), *vectors])


def to_rows(found: Sequence[Sequence[Any]], schema: Schema, with_vectors: bool) -> Rows:
    """What was selected, as rows; keys that a row does not have are left out."""
    number = len(FIXED)
    metadata: list[Mapping[str, Any]] = [
        {name: value for name, value in zip(schema.fields, row[number:], strict=False) if value is not None}
        for row in found
    ]
    columns: list[list[Any]] = [[row[at] for row in found] for at in range(number)]
    arrays = []
    for at, kept in enumerate(vector_columns(schema).values(), number + len(schema.fields)):
        arrays.append(off_the_wire([row[at] for row in found], kept, schema) if with_vectors else None)
    full: Any = arrays[1] if len(arrays) > 1 else None
    return Rows(columns[0], columns[1], columns[2], columns[3], columns[4], metadata, arrays[0], full)
