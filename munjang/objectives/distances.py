"""Compute distances and similarities of vectors.    A, B rows, D dimension, R rows of a block."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK_ROWS = 64  # the gradient of Manhattan distances holds R * B * D numbers on a GPU


def full(vectors: Tensor) -> Tensor:
    """Convert to fp32 at least: losses are small differences of large sums."""
    return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors


def unit(vectors: Tensor) -> Tensor:
    """Scale to length one, in fp32 at least; the zero vector stays zero."""
    return F.normalize(full(vectors), dim=-1)


def dot(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """Return the inner product of matching rows: [B]."""
    return (full(a_BD) * full(b_BD)).sum(-1)


def cosine(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """Return the cosine of matching rows: [B]."""
    return (unit(a_BD) * unit(b_BD)).sum(-1)


def _manhattan_of_all(a_AD: Tensor, b_BD: Tensor) -> Tensor:
    starts = range(0, len(a_AD), BLOCK_ROWS)
    return torch.cat([torch.cdist(full(a_AD[start : start + BLOCK_ROWS]), full(b_BD), p=1) for start in starts])


# Higher is closer; matching rows
SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cosine": cosine, "dot": dot}

# Lower is closer; matching rows. The gradient of a norm is 0 at 0, so equal texts do no harm.
DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": lambda a_BD, b_BD: 1 - cosine(a_BD, b_BD),
    "euclidean": lambda a_BD, b_BD: torch.linalg.vector_norm(full(a_BD) - full(b_BD), dim=-1),
    "manhattan": lambda a_BD, b_BD: (full(a_BD) - full(b_BD)).abs().sum(-1),
}

# Of every row with every row: [A, B]
DISTANCES_OF_ALL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": lambda a_AD, b_BD: 1 - unit(a_AD) @ unit(b_BD).t(),
    # by a matrix product: the other way needs A * B * D numbers for the gradient
    "euclidean": lambda a_AD, b_BD: torch.cdist(full(a_AD), full(b_BD), compute_mode="use_mm_for_euclid_dist"),
    "manhattan": _manhattan_of_all,
}
