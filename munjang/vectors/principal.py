"""Principal components: the directions in which vectors differ most.    N rows, D dimension, R reduced dimension."""

from typing import TypeVar

import numpy as np

from munjang.types import Doubles, Floats
from munjang.vectors.similarity import BLOCK_ROWS

Reals = TypeVar("Reals", Floats, Doubles)


def principal_components(vectors_ND: Reals, dimension: int) -> Reals:
    """Project the rows onto the directions in which they differ most, the strongest first; [N, R], R at most D.

    Exact, and the same in every run.

    >>> principal_components(np.array([[0, 1], [0, 3]], np.float32), 1).ravel().tolist()
    [-1.0, 1.0]
    """
    dtype = vectors_ND.dtype
    mean_D = vectors_ND.mean(0, dtype=np.float64).astype(dtype)
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, len(vectors_ND), BLOCK_ROWS)]
    squares_DD = np.zeros((vectors_ND.shape[1],) * 2, np.float64)
    for block in blocks:
        centred = vectors_ND[block] - mean_D
        squares_DD += centred.T @ centred
    directions_DR = np.linalg.eigh(squares_DD)[1][:, ::-1][:, :dimension]
    largest_R = np.take_along_axis(directions_DR, np.abs(directions_DR).argmax(0)[None], 0)
    directions_DR = directions_DR * np.sign(largest_R)  # a direction has no sign of its own
    reduced_NR = np.empty((len(vectors_ND), directions_DR.shape[1]), dtype)
    for block in blocks:
        reduced_NR[block] = (vectors_ND[block] - mean_D) @ directions_DR.astype(dtype)
    return reduced_NR
