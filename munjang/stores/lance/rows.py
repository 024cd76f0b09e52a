"""Rows and columns to Arrow tables and back, for LanceDB.    N rows, D dimensions.

Metadata fields are columns `field_0`, `field_1`, ... with `has_0`, ... beside them: their own names never reach the
engine. `vector` holds the full vectors, `small` the bytes of int8 and binary ones, `sparse` and `tokens` those of
sparse and token vectors. `rest` is JSON of all that a hit shows beside its text: reading ten rows here and there takes
a millisecond or more for every column.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from munjang.stores.arrow import Columns, joined
from munjang.stores.base import Rows, Schema
from munjang.stores.beside import sparse_bytes, sparse_of, token_bytes, tokens_of
from munjang.stores.checks import DTYPES, NEEDS_FULL

TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
TEXT_COLUMNS = ("id", "document_id", "text", "terms", "rest")
ESCAPED = r'["\\\x00-\x1f]'  # characters that JSON escapes


def field_columns(fields: Mapping[str, str], numbers: Mapping[str, int]) -> list[pa.Field]:
    """Return the two columns of each field."""
    return [
        column
        for name, kind in fields.items()
        for column in (pa.field(f"field_{numbers[name]}", TYPES[kind]), pa.field(f"has_{numbers[name]}", pa.bool_()))
    ]


def arrow_schema(schema: Schema, numbers: Mapping[str, int]) -> pa.Schema:
    """Return the columns of a table."""
    component = pa.float16() if schema.vectors == "float16" else pa.float32()
    columns = [pa.field(name, pa.string()) for name in TEXT_COLUMNS]
    columns += [pa.field(name, pa.bool_()) for name in ("has_id", "is_zero")]
    columns += [pa.field("vector", pa.list_(component, schema.dimension))]
    if schema.vectors in NEEDS_FULL:
        columns.append(pa.field("small", pa.binary(_small_width(schema))))
    columns += [pa.field(name, pa.large_binary()) for name in beside_columns(schema)]
    return pa.schema(columns + field_columns(schema.fields, numbers))


def beside_columns(schema: Schema) -> list[str]:
    """Return the columns of sparse and token vectors."""
    kept = {"sparse": schema.sparse_dimension, "tokens": schema.token_dimension}
    return [name for name, dimension in kept.items() if dimension]


def _small_width(schema: Schema) -> int:
    return schema.dimension // 8 if schema.vectors == "binary" else schema.dimension


def to_arrow(rows: Rows, schema: Schema, numbers: Mapping[str, int]) -> pa.Table:
    """Convert checked rows to a table."""
    full: Any = rows.vectors if rows.full_vectors is None or schema.vectors not in NEEDS_FULL else rows.full_vectors
    columns: dict[str, Any] = {
        "id": rows.ids,
        "document_id": rows.document_ids,
        "text": rows.texts,
        "terms": rows.terms if rows.terms is not None else [""] * len(rows),
        "rest": [_rest(rows, row) for row in range(len(rows))],
        "has_id": [True] * len(rows),
        "is_zero": ~np.asarray(full).any(axis=1),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(full)), schema.dimension),
    }
    if schema.vectors in NEEDS_FULL:
        small = np.ascontiguousarray(rows.vectors).tobytes()
        columns["small"] = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(_small_width(schema)), len(rows), [None, pa.py_buffer(small)]
        )
    columns["sparse"] = [] if rows.sparse is None else sparse_bytes(rows.sparse)
    columns["tokens"] = [] if rows.tokens is None else token_bytes(rows.tokens)
    for name, kind in schema.fields.items():
        values = [row.get(name) for row in rows.metadata]
        if kind == "float":  # no negative zero: Arrow orders it before zero
            values = [None if value is None else float(value) + 0.0 for value in values]
        columns[f"field_{numbers[name]}"] = values
        columns[f"has_{numbers[name]}"] = [value is not None for value in values]
    layout = arrow_schema(schema, numbers)
    arrays = [column if isinstance(column := columns[f.name], pa.Array) else pa.array(column, f.type) for f in layout]
    return pa.table(arrays, schema=layout)


def _rest(rows: Rows, row: int) -> str:
    """Return document, place and metadata as JSON."""
    metadata = {name: value for name, value in rows.metadata[row].items() if value is not None}
    rest = [rows.document_ids[row], int(rows.starts[row]), int(rows.ends[row]), metadata]
    return json.dumps(rest, ensure_ascii=False)


def read_columns(schema: Schema, with_vectors: bool) -> list[str]:
    """Return the columns that `from_arrow` needs. Words come with the vectors: hits need neither."""
    small = ["small"] if schema.vectors in NEEDS_FULL else []
    return ["id", "text", "rest", *(["terms", "vector", *small, *beside_columns(schema)] if with_vectors else [])]


def from_arrow(table: pa.Table | pa.RecordBatch, schema: Schema, with_vectors: bool) -> Rows:
    """Convert what was read to rows; keys that a row doesn't have are left out."""
    rows = rows_of(*(table.column(name).to_pylist() for name in read_columns(schema, False)))
    if not with_vectors:
        return rows
    full = matrix(table.column("vector"), schema.dimension)
    terms = table.column("terms").to_pylist()
    if schema.sparse_dimension:
        rows = replace(rows, sparse=sparse_of(table.column("sparse").to_pylist(), schema.sparse_dimension))
    if schema.token_dimension:
        rows = replace(rows, tokens=tokens_of(table.column("tokens").to_pylist(), schema))
    if schema.vectors not in NEEDS_FULL:
        return replace(rows, vectors=full, terms=terms)
    small = np.frombuffer(b"".join(table.column("small").to_pylist()), DTYPES[schema.vectors])
    return replace(rows, vectors=small.reshape(len(rows), _small_width(schema)), full_vectors=full, terms=terms)


def rows_of(ids: Sequence[str], texts: Sequence[str], rest: Sequence[str]) -> Rows:
    """Make rows without vectors of their columns."""
    parts = [json.loads(each) for each in rest]
    documents, starts, ends, metadata = ([each[part] for each in parts] for part in range(4))
    return Rows(ids, documents, texts, starts, ends, metadata)


def matrix(column: pa.ChunkedArray | pa.Array, dimension: int) -> Any:
    """Return the vectors of a column, [N, D]."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of no chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), dimension)


def columns_to_arrow(columns: Columns, schema: Schema, numbers: Mapping[str, int]) -> pa.Table:
    """Convert checked columns to the table that `to_arrow` makes of the same rows."""
    count = len(columns)
    full: Any = columns.full_vectors if schema.vectors in NEEDS_FULL else columns.vectors
    made: dict[str, Any] = {
        "id": columns.ids,
        "document_id": columns.document_ids,
        "text": columns.texts,
        "terms": pa.repeat(pa.scalar(""), count) if columns.terms is None else columns.terms,
        "rest": _rest_column(columns),
        "has_id": pa.repeat(pa.scalar(True), count),
        "is_zero": pa.array(~full.any(axis=1)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(full)), schema.dimension),
    }
    if schema.vectors in NEEDS_FULL:
        small = np.ascontiguousarray(columns.vectors)
        kind = pa.binary(small.shape[1])
        made["small"] = pa.FixedSizeBinaryArray.from_buffers(kind, count, [None, pa.py_buffer(small)])
    layout = arrow_schema(schema, numbers)
    for field in layout:
        if field.name.startswith("field_"):
            made[field.name] = pa.nulls(count, field.type)
        elif field.name.startswith("has_") and field.name not in made:
            made[field.name] = pa.repeat(pa.scalar(False), count)
    return pa.table([made[field.name].cast(field.type) for field in layout], schema=layout)


def _rest_column(columns: Columns) -> pa.Array:
    """Return what `_rest` gives for each row."""
    ids = columns.document_ids
    if pc.any(pc.match_substring_regex(ids, ESCAPED)).as_py():  # seldom; a kernel can't escape
        ids = pa.array([json.dumps(row_id, ensure_ascii=False)[1:-1] for row_id in ids.to_pylist()], pa.string())
    return joined('["', ids, '", 0, ', pa.array(columns.ends).cast(pa.string()), ", {}]")
