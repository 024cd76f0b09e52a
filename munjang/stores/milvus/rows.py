"""Rows to what Milvus takes and back.    N rows, D dimensions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from munjang.stores.arrow import Columns
from munjang.types import Array, Floats
from munjang.vectors.sparse import SparseVectors


def columns_of(part: Columns) -> dict[str, tuple[str, Any]]:
    """Return the fields of a collection beside its vectors."""
    count = len(part)
    texts = {"id": part.ids, "document_id": part.document_ids, "text": part.texts}
    found: dict[str, tuple[str, Any]] = {name: ("text", column.to_pylist()) for name, column in texts.items()}
    found |= {"start_at": ("int", [0] * count), "end_at": ("int", part.ends.tolist())}
    return found | {"metadata": ("json", [b"{}"] * count), "is_zero": ("bool", (~part.vectors.any(axis=1)).tolist())}


def parts(values: Any, number: int) -> Iterator[Any]:
    """Cut values into as many at a time."""
    return (values[start : start + number] for start in range(0, len(values), number))


def matrix(found: Sequence[Mapping[str, Any]], width: int) -> Floats:
    """Return the vectors of what was read."""
    return np.array([row["vector"] for row in found], np.float32).reshape(len(found), width)


def entries(indices: Array, values: Array) -> dict[int, float]:
    """Return a sparse row as Milvus takes it."""
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def sparse_of(found: Sequence[Mapping[str, Any]], dimension: int) -> SparseVectors:
    """Return the sparse rows of what was read."""
    rows = ({at: value for at, value in dict(row["sparse"]).items() if at < dimension} for row in found)
    return SparseVectors.of(rows, dimension)


def json_of(value: Any) -> dict[str, Any]:
    """Return a JSON field, which some versions give as text."""
    return value if isinstance(value, dict) else dict(json.loads(value))
