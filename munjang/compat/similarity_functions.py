"""How close vectors are, as torch tensors: every row against every row, or row by row. Higher is closer.

A and B rows of the two sides, D width. Sides may be tensors, arrays or lists of either; one vector counts as one row.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.compat.gaps import SPARSE
from munjang.errors import InputError
from munjang.vectors import similarity

Vectors = Any  # a tensor, an array, or a list of tensors, arrays or numbers
Similarity = Callable[[Vectors, Vectors], Tensor]


def as_tensor(vectors: Vectors) -> Tensor:
    """Vectors as a tensor of their own dtype; an array is viewed, not copied, where torch can."""
    if isinstance(vectors, list) and vectors and all(isinstance(row, (Tensor, np.ndarray)) for row in vectors):
        vectors = torch.stack([as_tensor(row) for row in vectors])
    elif isinstance(vectors, np.ndarray) and vectors.flags.writeable:
        vectors = torch.from_numpy(vectors)
    elif not isinstance(vectors, Tensor):
        vectors = torch.tensor(vectors)
    if vectors.layout != torch.strided:
        raise InputError(f"The vectors are a sparse tensor. {SPARSE}")
    return vectors


def as_floats(vectors: Vectors) -> Tensor:
    """Half precision widened to float32: a product in it would round close scores into ties."""
    tensor = as_tensor(vectors)
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor


def as_rows(vectors: Vectors) -> Tensor:
    """A matrix; one vector is one row."""
    tensor = as_floats(vectors)
    return tensor[None] if tensor.ndim == 1 else tensor


def unit(vectors: Tensor) -> Tensor:
    """Length one; the zero vector stays zero."""
    return similarity.unit(vectors)


def cos_sim(a: Vectors, b: Vectors) -> Tensor:
    """Cosine of every row of a and every row of b: [A, B]."""
    return similarity.cosine(as_rows(a), as_rows(b))


def dot_score(a: Vectors, b: Vectors) -> Tensor:
    """Inner product of every row of a and every row of b: [A, B]."""
    return similarity.dot(as_rows(a), as_rows(b))


def euclidean_sim(a: Vectors, b: Vectors) -> Tensor:
    """Minus the Euclidean distance of every row of a and every row of b: [A, B]; the incumbent's, to the last bit."""
    return -torch.cdist(as_rows(a), as_rows(b))


def manhattan_sim(a: Vectors, b: Vectors) -> Tensor:
    """Minus the summed differences of every row of a and every row of b: [A, B]."""
    return similarity.manhattan(as_rows(a), as_rows(b))


def pairwise_cos_sim(a: Vectors, b: Vectors) -> Tensor:
    """Cosine of matching rows: [A]."""
    return similarity.cosine_of_rows(as_floats(a), as_floats(b))


def pairwise_dot_score(a: Vectors, b: Vectors) -> Tensor:
    """Inner product of matching rows: [A]."""
    return similarity.dot_of_rows(as_floats(a), as_floats(b))


def pairwise_euclidean_sim(a: Vectors, b: Vectors) -> Tensor:
    """Minus the Euclidean distance of matching rows: [A]."""
    return similarity.euclidean_of_rows(as_floats(a), as_floats(b))


def pairwise_manhattan_sim(a: Vectors, b: Vectors) -> Tensor:
    """Minus the summed differences of matching rows: [A]."""
    return similarity.manhattan_of_rows(as_floats(a), as_floats(b))


class SimilarityFunction(Enum):
    """The names of similarities; a model's `similarity_fn_name` is one of their values."""

    COSINE = "cosine"
    DOT_PRODUCT = "dot"
    DOT = "dot"  # noqa: PIE796  # the incumbent's second name
    EUCLIDEAN = "euclidean"
    MANHATTAN = "manhattan"

    @staticmethod
    def to_similarity_fn(similarity_function: "str | SimilarityFunction") -> Similarity:
        """The function of every row against every row."""
        return FUNCTIONS[SimilarityFunction(similarity_function)][0]

    @staticmethod
    def to_similarity_pairwise_fn(similarity_function: "str | SimilarityFunction") -> Similarity:
        """The function of matching rows."""
        return FUNCTIONS[SimilarityFunction(similarity_function)][1]

    @staticmethod
    def possible_values() -> list[str]:
        """All names."""
        return [function.value for function in SimilarityFunction]


FUNCTIONS: dict[SimilarityFunction, tuple[Similarity, Similarity]] = {
    SimilarityFunction.COSINE: (cos_sim, pairwise_cos_sim),
    SimilarityFunction.DOT_PRODUCT: (dot_score, pairwise_dot_score),
    SimilarityFunction.EUCLIDEAN: (euclidean_sim, pairwise_euclidean_sim),
    SimilarityFunction.MANHATTAN: (manhattan_sim, pairwise_manhattan_sim),
}
