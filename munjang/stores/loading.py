"""Whole columns that are to be loaded: checked against the schema, and as rows for stores that hold rows."""

from dataclasses import replace

import numpy as np

from munjang.errors import InputError
from munjang.stores.arrow import Columns
from munjang.stores.base import Rows, Schema
from munjang.stores.checks import DTYPES, NEEDS_FULL


def check_columns(columns: Columns, schema: Schema, max_text_bytes: int | None = None) -> None:
    """Refuse columns that don't fit the schema, or texts that the engine can't keep."""
    import pyarrow.compute as pc

    width = schema.dimension // 8 if schema.vectors == "binary" else schema.dimension
    wanted = ((len(columns), width), np.dtype(DTYPES[schema.vectors]))
    if (columns.vectors.shape, columns.vectors.dtype) != wanted:
        given = f"{columns.vectors.dtype} {list(columns.vectors.shape)}"
        raise InputError(f"The store holds vectors {wanted[1]} {list(wanted[0])}; given are {given}.")
    full = columns.full_vectors if schema.vectors in NEEDS_FULL else columns.vectors
    if full is None or full.shape != (len(columns), schema.dimension):
        raise InputError(f"{schema.vectors} vectors need full ones beside them, {schema.dimension} wide.")
    if not np.isfinite(full).all():
        row = int(np.flatnonzero(~np.isfinite(full).all(1))[0])
        raise InputError(f"The vector of {columns.document_ids[row].as_py()!r} holds NaN or infinity.")
    if pc.count_distinct(columns.document_ids).as_py() != len(columns):
        raise InputError("An id occurs twice among the rows.")
    for name, column in (("id", columns.document_ids), ("text", columns.texts)):
        if column.null_count or pc.any(pc.match_substring(column, "\0")).as_py():
            raise InputError(f"A row has no {name}, or one with a zero character in it.")
    if pc.any(pc.equal(pc.binary_length(columns.document_ids), 0)).as_py():
        raise InputError("Ids are texts that are not empty.")
    for name, column in (("id", columns.ids), ("text", columns.texts)) if max_text_bytes is not None else ():
        sizes = pc.binary_length(column).to_numpy(zero_copy_only=False)
        if len(sizes) and sizes.max() > max_text_bytes:
            row = int(sizes.argmax())
            which = columns.document_ids[row].as_py()
            raise InputError(f"The {name} of {which!r:.40} has {sizes[row]:,} bytes; at most {max_text_bytes:,} fit.")


def as_rows(columns: Columns) -> Rows:
    """For stores that live in Python anyway."""
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
