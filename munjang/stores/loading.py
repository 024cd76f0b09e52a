"""Many rows at once, as whole columns: what `load` of every store takes.    N rows, D components.

Arrow's own kernels put the columns together; no row passes through Python.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import InputError
from munjang.stores.base import Rows, Schema
from munjang.stores.checks import DTYPES, NEEDS_FULL
from munjang.types import Array, Floats

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Columns:
    """Documents of one passage each, without metadata. Columns of texts are Arrow arrays."""

    document_ids: "pa.Array"
    texts: "pa.Array"
    vectors: Array  # [N, D] as the schema says
    full_vectors: Floats | None = None  # [N, D] beside int8 and binary ones
    terms: "pa.Array | None" = None

    def __len__(self) -> int:
        return len(self.document_ids)

    @property
    def ids(self) -> "pa.Array":
        """Of the passages: each is the first one of its document."""
        return joined(self.document_ids, "#0")

    @property
    def ends(self) -> Array:
        """Characters of each text."""
        import pyarrow.compute as pc

        return pc.utf8_length(self.texts).to_numpy(zero_copy_only=False)

    def parts(self, rows: int) -> Iterator["Columns"]:
        """Cut into so many rows at a time."""
        for start in range(0, len(self), rows):
            full = None if self.full_vectors is None else self.full_vectors[start : start + rows]
            words = None if self.terms is None else self.terms.slice(start, rows)
            cut = (self.document_ids.slice(start, rows), self.texts.slice(start, rows))
            yield Columns(*cut, self.vectors[start : start + rows], full, words)


def joined(*parts: Any) -> "pa.Array":
    """Texts or bytes put together row by row; a part is a column or the same for all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = any(isinstance(part, str) for part in parts)
    kind, nothing = (pa.large_string(), "") if is_text else (pa.large_binary(), b"")
    columns = [part.cast(kind) if isinstance(part, pa.Array) else pa.scalar(part, kind) for part in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar(nothing, kind))


def check_columns(columns: Columns, schema: Schema) -> None:
    """Refuse columns that don't fit the schema."""
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
