"""How close vectors are: higher is closer, everywhere.    A and B rows of the two sides, D width."""

from collections.abc import Callable

import numpy as np

from munjang.errors import InputError
from munjang.types import Floats


def dot(a_AD: Floats, b_BD: Floats) -> Floats:
    """Inner product."""
    return a_AD @ b_BD.T


def cosine(a_AD: Floats, b_BD: Floats) -> Floats:
    """Inner product of the directions; the zero vector is close to nothing."""
    return unit(a_AD) @ unit(b_BD).T


def euclidean(a_AD: Floats, b_BD: Floats) -> Floats:
    """Minus the distance. In double precision: near neighbours are a small difference of large squares."""
    a, b = a_AD.astype(np.float64), b_BD.astype(np.float64)
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * (a @ b.T)
    return (-np.sqrt(np.maximum(squares, 0))).astype(np.float32)


def manhattan(a_AD: Floats, b_BD: Floats) -> Floats:
    """Minus the sum of the differences of all components."""
    rows = [-np.abs(b_BD - row).sum(1) for row in a_AD]
    return np.stack(rows).astype(np.float32) if rows else np.zeros((0, len(b_BD)), np.float32)


SIMILARITIES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}

# Row by row: the same functions on matching rows
PAIRWISE: dict[str, Callable[[Floats, Floats], Floats]] = {
    "cosine": lambda a, b: (unit(a) * unit(b)).sum(1),
    "dot": lambda a, b: (a * b).sum(1),
    "euclidean": lambda a, b: -np.sqrt(((a - b).astype(np.float64) ** 2).sum(1)).astype(np.float32),
    "manhattan": lambda a, b: -np.abs(a - b).sum(1),
}


def unit(vectors_AD: Floats) -> Floats:
    """Rows of length one; the zero vector stays zero."""
    length = np.linalg.norm(vectors_AD, axis=1, keepdims=True)
    return (vectors_AD / np.maximum(length, 1e-12)).astype(np.float32)


def check_vectors(vectors: object, what: str) -> Floats:
    """A finite float32 matrix, or an error that says what is wrong."""
    try:
        array = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The {what} should be texts or an array of vectors, not {type(vectors).__name__} ({error})."
        ) from error
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2:
        raise InputError(f"The {what} should be one vector or a matrix of them, not an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(1))[0])
        raise InputError(f"Vector {row} of the {what} holds NaN or infinity.")
    return array
