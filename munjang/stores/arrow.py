"""Rows as whole columns, which `load` of every store takes.    N rows, D dimensions.

Arrow's own kernels put the columns together; no row passes through Python.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

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
        """Return the ids of the passages: each is the first of its document."""
        return joined(self.document_ids, "#0")

    @property
    def ends(self) -> Array:
        """Return the number of characters of each text."""
        import pyarrow.compute as pc

        return pc.utf8_length(self.texts).to_numpy(zero_copy_only=False)

    @property
    def text_bytes(self) -> Array:
        """Return the bytes of id, document and text of each row."""
        import pyarrow.compute as pc

        columns = (self.ids, self.document_ids, self.texts)
        return sum(pc.binary_length(column).to_numpy(zero_copy_only=False).astype(np.int64) for column in columns)

    def batches(self, rows: int) -> Iterator["Columns"]:
        """Cut into so many rows at a time."""
        return (self.cut(start, rows) for start in range(0, len(self), rows))

    def batches_of_bytes(self, max_bytes: int, row_bytes: int) -> Iterator["Columns"]:
        """Cut into as many rows as fit at a time, one at least; `row_bytes`: of a row beside its texts."""
        ends = np.cumsum(self.text_bytes + row_bytes)
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, before + max_bytes, "right")), start + 1)
            yield self.cut(start, stop - start)
            start = stop

    def cut(self, start: int, rows: int) -> "Columns":
        """Return so many rows from a start."""
        full = None if self.full_vectors is None else self.full_vectors[start : start + rows]
        words = None if self.terms is None else self.terms.slice(start, rows)
        texts = (self.document_ids.slice(start, rows), self.texts.slice(start, rows))
        return Columns(*texts, self.vectors[start : start + rows], full, words)


def joined(*parts: Any) -> "pa.Array":
    """Concatenate texts or bytes row by row; a part is a column, or one value for all rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = any(isinstance(part, str) for part in parts)
    kind, nothing = (pa.large_string(), "") if is_text else (pa.large_binary(), b"")
    columns = [part.cast(kind) if isinstance(part, pa.Array) else pa.scalar(part, kind) for part in parts]
    return pc.binary_join_element_wise(*columns, pa.scalar(nothing, kind))
