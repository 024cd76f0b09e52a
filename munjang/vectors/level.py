"""Levelling: take away what the vectors of all texts have in common, so that unrelated texts have a cosine near 0.

N texts, D dimension.
"""

import numpy as np

from munjang.errors import InputError
from munjang.types import Floats
from munjang.vectors.similarity import unit

MIN_MIDDLE = 0.02  # below, the direction is one of many, and vectors need it
RIDGE = 0.001  # on the moments of unit vectors; a smaller one takes less away, and more evenly


def level(vectors_ND: Floats) -> tuple[Floats, float]:
    """Return a projection [D, D] after which a cosine c is nearly (c - middle) / (1 - middle), and that middle.

    Vectors that have nothing in common stay as they are: the identity, and 0.

    If a direction a had the same product with all unit vectors, 1, then projecting it away would take 1 / |a|² off
    every product and change nothing else. Least squares find a: unlike the mean's, its products hardly differ from
    text to text.

    >>> vectors = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32) + [3, 0, 0, 0, 0, 0, 0, 0]
    >>> projection, middle = level(vectors)
    >>> 0.4 < middle < 0.6, np.linalg.matrix_rank(projection).item()
    (True, 7)
    """
    unit_ND = unit(vectors_ND[np.abs(vectors_ND).max(1) > 0].astype(np.float64))  # texts without words have zeros
    if len(unit_ND) < unit_ND.shape[1]:
        raise InputError(
            f"Levelling needs a few thousand typical texts, at least {unit_ND.shape[1]}, one for each dimension of a "
            f"vector; got {len(unit_ND)}."
        )
    mean_D = unit_ND.mean(0)
    moments_DD = unit_ND.T @ unit_ND / len(unit_ND) + RIDGE * np.eye(unit_ND.shape[1])
    common_D = np.linalg.solve(moments_DD, mean_D)
    common_D /= max(common_D @ mean_D, 1e-9)
    middle = float(1 / (common_D @ common_D))
    if middle < MIN_MIDDLE:
        return np.eye(len(mean_D), dtype=np.float32), 0.0
    projection: Floats = (np.eye(len(mean_D)) - middle * np.outer(common_D, common_D)).astype(np.float32)
    return projection, middle
