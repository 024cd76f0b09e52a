"""Nearest rows by a similarity function, exactly, a block at a time.    A and B rows, D width, K neighbours."""

from collections.abc import Iterator

import numpy as np

from munjang.types import Floats, Ints
from munjang.vectors.similarity import SIMILARITIES, unit

BLOCK_SCORES = 1 << 24  # of one block: 64 MB


def nearest(
    a_AD: Floats, b_BD: Floats, num_neighbours: int, similarity: str = "cosine"
) -> Iterator[tuple[Ints, Floats]]:
    """For each row of `a` the closest rows of `b`, best first, and how close they are; of equal ones the first."""
    if similarity == "cosine":  # the lengths once, not for each block
        a_AD, b_BD, similarity = unit(a_AD), unit(b_BD), "dot"
    num_rows = max(1, BLOCK_SCORES // max(len(b_BD), 1))
    count = min(num_neighbours, len(b_BD))
    for start in range(0, len(a_AD), num_rows):
        for scores_B in SIMILARITIES[similarity](a_AD[start : start + num_rows], b_BD):
            limit = np.partition(scores_B, -count)[-count] if count else np.float32(0)
            rows = np.flatnonzero(scores_B >= limit)
            order = rows[np.argsort(-scores_B[rows], kind="stable")[:count]]
            yield order, scores_B[order]
