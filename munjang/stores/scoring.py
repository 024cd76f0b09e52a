"""Score candidates in full precision, and order them.    C candidates, D components."""

import heapq
from collections.abc import Sequence

import numpy as np

from munjang.stores.base import Found
from munjang.types import Array, Doubles, Floats
from munjang.vectors.similarity import PAIRWISE


def rescored(query_D: Floats, ids: Sequence[str], vectors_CD: Array, metric: str, k: int) -> Found:
    """Return the k best candidates by `vectors/similarity.py`; equal vectors get equal scores wherever they stand."""
    if not len(ids):
        return Found([], [])
    vectors = np.ascontiguousarray(vectors_CD, np.float32)
    scores = PAIRWISE[metric](np.broadcast_to(query_D, vectors.shape), vectors)
    return best(ids, np.asarray(scores, np.float64), k)


def best(ids: Sequence[str], scores_C: Doubles, k: int) -> Found:
    """Return the k highest, equal ones by id."""
    found = heapq.nsmallest(k, zip((-scores_C).tolist(), ids, strict=True))
    return Found([row_id for _, row_id in found], [-score for score, _ in found])
