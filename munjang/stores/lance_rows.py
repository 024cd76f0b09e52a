"""Rows to Arrow tables and back, for LanceDB.    N rows, D components.

Metadata fields are columns `field_0`, `field_1`, ... with `has_0`, ... beside them: their own names never reach the
engine. `vector` holds the full vectors, `small` the bytes of int8 and binary ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from munjang.stores.base import Rows, Schema, Value
from munjang.stores.checks import DTYPES, NEEDS_FULL

TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
PLAIN = ("id", "document_id", "text", "start", "end", "terms")


def field_columns(fields: Mapping[str, str], numbers: Mapping[str, int]) -> list[pa.Field]:
    """The two columns of each field."""
    return [
        column
        for name, kind in fields.items()
        for column in (pa.field(f"field_{numbers[name]}", TYPES[kind]), pa.field(f"has_{numbers[name]}", pa.bool_()))
    ]


def arrow_schema(schema: Schema, numbers: Mapping[str, int]) -> pa.Schema:
    """The columns of a table."""
    component = pa.float16() if schema.vectors == "float16" else pa.float32()
    columns = [pa.field(name, pa.string()) for name in ("id", "document_id", "text")]
    columns += [pa.field(name, pa.int64()) for name in ("start", "end")]
    columns += [pa.field("terms", pa.string()), pa.field("has_id", pa.bool_()), pa.field("is_zero", pa.bool_())]
    columns += [pa.field("vector", pa.list_(component, schema.dimension))]
    if schema.vectors in NEEDS_FULL:
        columns.append(pa.field("small", pa.binary(_small_width(schema))))
    return pa.schema(columns + field_columns(schema.fields, numbers))


def _small_width(schema: Schema) -> int:
    return schema.dimension // 8 if schema.vectors == "binary" else schema.dimension


def to_arrow(rows: Rows, schema: Schema, numbers: Mapping[str, int]) -> pa.Table:
    """Rows that were checked, as a table of these columns."""
    full: Any = rows.vectors if rows.full_vectors is None or schema.vectors not in NEEDS_FULL else rows.full_vectors
    columns: dict[str, Any] = {
        "id": rows.ids,
        "document_id": rows.document_ids,
        "text": rows.texts,
        "start": rows.starts,
        "end": rows.ends,
        "terms": rows.terms if rows.terms is not None else [""] * len(rows),
        "has_id": [True] * len(rows),
        "is_zero": ~np.asarray(full).any(axis=1),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(full)), schema.dimension),
    }
    if schema.vectors in NEEDS_FULL:
        small = np.ascontiguousarray(rows.vectors).tobytes()
        columns["small"] = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(_small_width(schema)), len(rows), [None, pa.py_buffer(small)]
        )
    for name, kind in schema.fields.items():
        values = [row.get(name) for row in rows.metadata]
        if kind == "float":  # no negative zero: Arrow orders it before zero
            values = [None if value is None else float(value) + 0.0 for value in values]
        columns[f"field_{numbers[name]}"] = values
        columns[f"has_{numbers[name]}"] = [value is not None for value in values]
    layout = arrow_schema(schema, numbers)
    arrays = [column if isinstance(column := columns[f.name], pa.Array) else pa.array(column, f.type) for f in layout]
    return pa.table(arrays, schema=layout)


def read_columns(schema: Schema, numbers: Mapping[str, int], with_vectors: bool) -> list[str]:
    """The columns that `from_arrow` needs."""
    vectors = ["vector", *(["small"] if schema.vectors in NEEDS_FULL else [])] if with_vectors else []
    return [*PLAIN, *(f"field_{numbers[name]}" for name in schema.fields), *vectors]


def from_arrow(
    table: pa.Table | pa.RecordBatch, schema: Schema, numbers: Mapping[str, int], with_vectors: bool
) -> Rows:
    """Rows of what was read; keys that a row doesn't have are left out."""
    plain = {name: table.column(name).to_pylist() for name in PLAIN}
    metadata: list[dict[str, Value]] = [{} for _ in range(table.num_rows)]
    for name in schema.fields:
        for row, value in enumerate(table.column(f"field_{numbers[name]}").to_pylist()):
            if value is not None:
                metadata[row][name] = value
    vectors: Any = None
    full: Any = None
    if with_vectors:
        vectors = matrix(table.column("vector"), schema.dimension)
        if schema.vectors in NEEDS_FULL:
            small = b"".join(table.column("small").to_pylist())
            full = vectors
            vectors = np.frombuffer(small, DTYPES[schema.vectors]).reshape(table.num_rows, _small_width(schema))
    places: tuple[Sequence[int], Sequence[int]] = plain["start"], plain["end"]
    ids, documents, texts = plain["id"], plain["document_id"], plain["text"]
    return Rows(ids, documents, texts, *places, metadata, vectors, full, plain["terms"])


def matrix(column: pa.ChunkedArray | pa.Array, dimension: int) -> Any:
    """Vectors of a column, [N, D]."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of no chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), dimension)
