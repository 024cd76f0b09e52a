"""Similarity of vectors: higher is closer, everywhere.    A and B rows of the two sides, D dimension.

Every function takes numpy arrays or torch tensors and returns what it was given; torch is loaded by its users alone.
"""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from munjang.errors import InputError
from munjang.types import Floats

if TYPE_CHECKING:
    from torch import Tensor

Vectors = TypeVar("Vectors", Floats, "Tensor")
BLOCK_ROWS = 65_536  # a second copy of millions of rows would not fit


class Similarity(Protocol):
    """A function of two sides, both arrays or both tensors."""

    def __call__(self, a_AD: Vectors, b_BD: Vectors, /) -> Vectors: ...


def dot(a_AD: Vectors, b_BD: Vectors) -> Vectors:
    """Return the dot product of every row of `a` with every row of `b`."""
    return a_AD @ b_BD.T


def cosine(a_AD: Vectors, b_BD: Vectors) -> Vectors:
    """Return the cosine of every row of `a` with every row of `b`; 0 for the zero vector."""
    return unit(a_AD) @ unit(b_BD).T


def euclidean(a_AD: Vectors, b_BD: Vectors) -> Vectors:
    """Return minus the distances, precise for near rows too, whose squares nearly cancel out."""
    if isinstance(a_AD, np.ndarray):
        a, b = a_AD.astype(np.float64), b_BD.astype(np.float64)
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * (a @ b.T)
        return (-np.sqrt(np.maximum(squares, 0))).astype(np.float32)
    import torch

    return -torch.cdist(a_AD, b_BD, compute_mode="donot_use_mm_for_euclid_dist")


def manhattan(a_AD: Vectors, b_BD: Vectors) -> Vectors:
    """Return minus the sums of the absolute differences of all dimensions."""
    if isinstance(a_AD, np.ndarray):
        rows = [-np.abs(b_BD - row).sum(1) for row in a_AD]
        return np.stack(rows).astype(np.float32) if rows else np.zeros((0, len(b_BD)), np.float32)
    import torch

    return -torch.cdist(a_AD, b_BD, p=1.0)


def dot_of_rows(a_AD: Vectors, b_AD: Vectors) -> Vectors:
    """Return the dot product of matching rows."""
    return (a_AD * b_AD).sum(-1)


def cosine_of_rows(a_AD: Vectors, b_AD: Vectors) -> Vectors:
    """Return the cosine of matching rows."""
    return (unit(a_AD) * unit(b_AD)).sum(-1)


def euclidean_of_rows(a_AD: Vectors, b_AD: Vectors) -> Vectors:
    """Return minus the distance of matching rows."""
    if isinstance(a_AD, np.ndarray):
        return -np.sqrt(((a_AD - b_AD).astype(np.float64) ** 2).sum(1)).astype(np.float32)
    return -(a_AD - b_AD).norm(dim=-1)


def manhattan_of_rows(a_AD: Vectors, b_AD: Vectors) -> Vectors:
    """Return minus the sum of the absolute differences of matching rows."""
    return -abs(a_AD - b_AD).sum(-1)


# Every row against every row: [A, B]
SIMILARITIES: dict[str, Similarity] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}
# Matching rows: [A]
PAIRWISE: dict[str, Similarity] = {
    "cosine": cosine_of_rows,
    "dot": dot_of_rows,
    "euclidean": euclidean_of_rows,
    "manhattan": manhattan_of_rows,
}


def unit(vectors_AD: Vectors) -> Vectors:
    """Scale rows to length one; the zero vector stays zero."""
    if isinstance(vectors_AD, np.ndarray):
        length = np.linalg.norm(vectors_AD, axis=1, keepdims=True)
        return (vectors_AD / np.maximum(length, 1e-12)).astype(np.float32)
    from torch.nn.functional import normalize

    return normalize(vectors_AD, dim=-1)


def check_vectors(vectors: object, what: str) -> Floats:
    """Return a finite float32 matrix, or raise an error that says what is wrong with these vectors."""
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
    _check_finite(array, what)
    return array


def check_unit(vectors: Any, what: str) -> Floats:
    """Scale checked rows to length one, a block at a time; see `check_vectors`."""
    array = vectors if isinstance(vectors, np.ndarray) and vectors.ndim == 2 else check_vectors(vectors, what)
    if array.dtype.kind not in "fiu" or not array.shape[1]:
        raise InputError(f"The {what} should be texts or vectors of numbers, not an array of {array.dtype}.")
    units = np.empty(array.shape, np.float32)
    for start in range(0, len(array), BLOCK_ROWS):
        block = np.asarray(array[start : start + BLOCK_ROWS], np.float32)
        _check_finite(block, what, start)
        units[start : start + BLOCK_ROWS] = unit(block)
    return units


def _check_finite(vectors_AD: Floats, what: str, start: int = 0) -> None:
    is_finite_A = np.isfinite(vectors_AD).all(1)
    if not is_finite_A.all():
        row = start + int(np.flatnonzero(~is_finite_A)[0])
        raise InputError(f"Vector {row} of the {what} holds NaN or infinity; drop it, or encode its text again.")


def check_dimension(vectors: Any, dimension: int, what: str) -> None:
    """Refuse vectors of another dimension, which another model must have made."""
    if vectors.ndim == 2 and vectors.shape[1] != dimension:
        raise InputError(f"The {what} have {vectors.shape[1]} dimensions, not {dimension}: another model made them.")


def check_same_dimension(a_AD: Floats, b_BD: Floats | None) -> None:
    """Refuse two sets of different dimensions; an empty set fits any."""
    if b_BD is not None and len(a_AD) and len(b_BD) and a_AD.shape[1] != b_BD.shape[1]:
        raise InputError(
            f"The two sets have {a_AD.shape[1]} and {b_BD.shape[1]} dimensions; encode both with one model."
        )
