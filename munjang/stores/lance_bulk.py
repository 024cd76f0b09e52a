"""Columns as a LanceDB table takes them: Arrow in, Arrow out.    N rows, D components."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from munjang.stores.arrow import Columns, joined
from munjang.stores.base import Schema
from munjang.stores.checks import NEEDS_FULL
from munjang.stores.lance_rows import arrow_schema

ESCAPED = r'["\\\x00-\x1f]'  # what JSON writes otherwise


def columns_to_arrow(columns: Columns, schema: Schema, numbers: Mapping[str, int]) -> pa.Table:
    """The table that `lance_rows.to_arrow` makes of the same rows."""
    count = len(columns)
    full: Any = columns.full_vectors if schema.vectors in NEEDS_FULL else columns.vectors
    made: dict[str, Any] = {
        "id": columns.ids,
        "document_id": columns.document_ids,
        "text": columns.texts,
        "terms": pa.repeat(pa.scalar(""), count) if columns.terms is None else columns.terms,
        "rest": _rest(columns),
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


def _rest(columns: Columns) -> pa.Array:
    """JSON of document, place and metadata, as `lance_rows` reads it back."""
    ids = columns.document_ids
    if pc.any(pc.match_substring_regex(ids, ESCAPED)).as_py():  # seldom; a kernel can't escape
        ids = pa.array([json.dumps(each, ensure_ascii=False)[1:-1] for each in ids.to_pylist()], pa.string())
    return joined('["', ids, '", 0, ', pa.array(columns.ends).cast(pa.string()), ", {}]")
