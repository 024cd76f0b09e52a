"""Columns as a binary COPY stream of PostgreSQL.    N rows, D components.

A row is the number of its fields, then each field's length and bytes, most significant byte first. The pieces are
columns, joined by Arrow: the bytes of the result are the stream.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from munjang.stores.arrow import Columns, joined
from munjang.stores.base import Schema
from munjang.stores.postgres_rows import WIRE, kinds, vector_columns
from munjang.types import Array

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
PART = 8192  # rows that are joined at once


def names_of(schema: Schema) -> list[str]:
    """The columns of the stream, in order."""
    return [*kinds(schema), *vector_columns(schema)]


def stream(columns: Columns, schema: Schema) -> Iterator[Any]:
    """What COPY ... FROM STDIN (FORMAT BINARY) reads."""
    yield HEADER
    for part in columns.parts(PART):
        rows = _rows(part, schema)
        offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset : rows.offset + len(rows) + 1]
        yield memoryview(rows.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
    yield TRAILER


def _rows(part: Columns, schema: Schema) -> pa.Array:
    names = names_of(schema)
    pieces: list[Any] = [len(names).to_bytes(2, "big")]
    for texts in (part.ids, part.document_ids, part.texts):
        sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)
        pieces += [_numbers(sizes, ">i4"), texts]
    pieces += [_sized(bytes(8)), (8).to_bytes(4, "big"), _numbers(part.ends, ">i8")]
    pieces += [NULL * len(schema.fields)]
    given: list[Any] = [part.vectors, part.full_vectors]
    for vectors, kept in zip(given, vector_columns(schema).values(), strict=False):
        pieces += _vectors(vectors, kept)
    return joined(*(piece.cast(pa.large_binary()) if isinstance(piece, pa.Array) else piece for piece in pieces))


def _vectors(vectors: Array, kept: str) -> list[Any]:
    """Their length, pgvector's head and their components."""
    if kept == "binary":
        head = (8 * vectors.shape[1]).to_bytes(4, "big")
        wire = np.ascontiguousarray(vectors)
    else:
        head = vectors.shape[1].to_bytes(2, "big") + b"\0\0"
        wire = np.ascontiguousarray(vectors.astype(WIRE[kept]))
    width = wire.shape[1] * wire.itemsize
    size = (len(head) + width).to_bytes(4, "big")
    return [size + head, _fixed(wire, width)]


def _numbers(values: Array, kind: str) -> pa.Array:
    wire = np.ascontiguousarray(values.astype(kind))
    return _fixed(wire, wire.itemsize)


def _fixed(wire: Array, width: int) -> pa.Array:
    """Rows of so many bytes each."""
    buffer = pa.py_buffer(wire.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(wire), [None, buffer])


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
