"""Rows as whole columns: what `load` of every store takes.    N rows, D components.

Arrow's own kernels put the columns together; no row passes through Python.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
