"""Similarity of vectors as torch tensors: all pairs of rows, or matching rows. Higher is closer.

A and B rows of the two sides, D dimension. Sides may be tensors, arrays or lists of either; one vector is one row.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.compat.late import maxsim, maxsim_pairwise, mean_maxsim, mean_maxsim_pairwise
from munjang.vectors import similarity

Vectors = Any  # a tensor, an array, or a list of tensors, arrays or numbers
Similarity = Callable[[Vectors, Vectors], Tensor]


def as_tensor(vectors: Vectors) -> Tensor:
    """Convert vectors to a tensor of the same dtype; an array is not copied if torch can share its memory."""
    if isinstance(vectors, list) and vectors and all(isinstance(row, (Tensor, np.ndarray)) for row in vectors):
        vectors = torch.stack([as_tensor(row) for row in vectors])
    elif isinstance(vectors, np.ndarray) and vectors.flags.writeable:
        vectors = torch.from_numpy(vectors)
    elif not isinstance(vectors, Tensor):
        vectors = torch.tensor(vectors)
    return vectors if vectors.layout == torch.strided else vectors.to_dense()


def as_floats(vectors: Vectors) -> Tensor:
    """Convert vectors to a tensor, half precision to float32: half-precision products would round scores into ties."""
    tensor = as_tensor(vectors)
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor


def as_rows(vectors: Vectors) -> Tensor:
    """Convert vectors to a matrix; one vector is one row."""
    tensor = as_floats(vectors)
    return tensor[None] if tensor.ndim == 1 else tensor


def unit(vectors: Tensor) -> Tensor:
    """Scale rows to length one; the zero vector stays zero."""
    return similarity.unit(vectors)


def cos_sim(a: Vectors, b: Vectors) -> Tensor:
    """Return the cosine of every row of a and every row of b: [A, B]."""
    return similarity.cosine(as_rows(a), as_rows(b))


def dot_score(a: Vectors, b: Vectors) -> Tensor:
    """Return the inner product of every row of a and every row of b: [A, B]."""
    return similarity.dot(as_rows(a), as_rows(b))


def euclidean_sim(a: Vectors, b: Vectors) -> Tensor:
    """Return minus the Euclidean distance of every two rows, [A, B]; the incumbent's, to the last bit."""
    return -torch.cdist(as_rows(a), as_rows(b))


def manhattan_sim(a: Vectors, b: Vectors) -> Tensor:
    """Return minus the summed differences of every row of a and every row of b: [A, B]."""
    return similarity.manhattan(as_rows(a), as_rows(b))


def pairwise_cos_sim(a: Vectors, b: Vectors) -> Tensor:
    """Return the cosine of matching rows: [A]."""
    return similarity.cosine_of_rows(as_floats(a), as_floats(b))


def pairwise_dot_score(a: Vectors, b: Vectors) -> Tensor:
    """Return the inner product of matching rows: [A]."""
    return similarity.dot_of_rows(as_floats(a), as_floats(b))


def pairwise_euclidean_sim(a: Vectors, b: Vectors) -> Tensor:
    """Return minus the Euclidean distance of matching rows: [A]."""
    return similarity.euclidean_of_rows(as_floats(a), as_floats(b))


def pairwise_manhattan_sim(a: Vectors, b: Vectors) -> Tensor:
    """Return minus the summed differences of matching rows: [A]."""
    return similarity.manhattan_of_rows(as_floats(a), as_floats(b))


pytorch_cos_sim = cos_sim  # its name before 2.0


def pairwise_angle_sim(x: Any, y: Any) -> Tensor:
    """The AnglE similarity of matching rows: |cosine + sine| of complex numbers whose parts are the two halves."""
    first, second = as_floats(x), as_floats(y)
    if first.shape[1] % 2:
        first, second = (torch.nn.functional.pad(side, (0, 1)) for side in (first, second))
    first, second = unit(first), unit(second)
    (real_x, imaginary_x), (real_y, imaginary_y) = first.chunk(2, dim=1), second.chunk(2, dim=1)
    cosines = (first * second).sum(1)
    return (cosines + (imaginary_x * real_y - real_x * imaginary_y).sum(1)).abs()


class SimilarityFunction(Enum):
    """The names of similarities; a model's `similarity_fn_name` is one of their values."""

    COSINE = "cosine"
    DOT_PRODUCT = "dot"
    DOT = "dot"  # noqa: PIE796  # the incumbent's second name
    EUCLIDEAN = "euclidean"
    MANHATTAN = "manhattan"
    MAXSIM = "maxsim"
    MEAN_MAXSIM = "meanmaxsim"

    @staticmethod
    def to_similarity_fn(similarity_function: "str | SimilarityFunction") -> Similarity:
        """Return the function for all pairs of rows."""
        return FUNCTIONS[SimilarityFunction(similarity_function)][0]

    @staticmethod
    def to_similarity_pairwise_fn(similarity_function: "str | SimilarityFunction") -> Similarity:
        """Return the function for matching rows."""
        return FUNCTIONS[SimilarityFunction(similarity_function)][1]

    @staticmethod
    def possible_values() -> list[str]:
        """Return all names."""
        return [function.value for function in SimilarityFunction]


FUNCTIONS: dict[SimilarityFunction, tuple[Similarity, Similarity]] = {
    SimilarityFunction.COSINE: (cos_sim, pairwise_cos_sim),
    SimilarityFunction.DOT_PRODUCT: (dot_score, pairwise_dot_score),
    SimilarityFunction.EUCLIDEAN: (euclidean_sim, pairwise_euclidean_sim),
    SimilarityFunction.MANHATTAN: (manhattan_sim, pairwise_manhattan_sim),
    SimilarityFunction.MAXSIM: (maxsim, maxsim_pairwise),
    SimilarityFunction.MEAN_MAXSIM: (mean_maxsim, mean_maxsim_pairwise),
}
