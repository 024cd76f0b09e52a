"""MaxSim of sentence-transformers over ours: token vectors as padded tensors with masks, or as lists without.

A queries, B documents, L the longest in tokens, T tokens of one text, D dimension.
"""

import logging
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.vectors.maxsim import EMPTY_SCORE, maxsim_matrix

logger = logging.getLogger(__name__)
Tokens = Any  # a tensor or array [L, D] or [B, L, D], or a list of [T, D]


def maxsim(
    a: Tokens,
    b: Tokens,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = False,
    device: str | torch.device | None = None,
) -> Tensor:
    """Return the MaxSim of every query and every document: float32 [A, B].

    `chunk_elements` changes no score: blocks of documents are made to suit the memory.
    """
    queries, documents, home = _sides(a, b, a_mask, b_mask, device)
    if not queries or not documents:
        return torch.zeros(len(queries), len(documents), device=home)
    scores: Tensor = maxsim_matrix(queries, documents)
    _warn_of_empty(documents)
    return (scores / _counts(queries)[:, None] if length_normalize else scores).to(home)


def maxsim_pairwise(
    a: Tokens,
    b: Tokens,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = False,
    device: str | torch.device | None = None,
) -> Tensor:
    """Return the MaxSim of matching queries and documents: float32 [A]."""
    queries, documents, home = _sides(a, b, a_mask, b_mask, device)
    if len(queries) != len(documents):
        raise InputError(f"a and b must hold the same number of items, got {len(queries)} and {len(documents)}.")
    if not queries:
        return torch.zeros(0, device=home)
    pairs = zip(queries, documents, strict=True)
    scores = torch.stack([maxsim_matrix([query], [document])[0, 0] for query, document in pairs])
    _warn_of_empty(documents)
    return (scores / _counts(queries) if length_normalize else scores).to(home)


def mean_maxsim(
    a: Tokens,
    b: Tokens,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = True,
    device: str | torch.device | None = None,
) -> Tensor:
    """Return `maxsim` divided by the number of each query's tokens."""
    return maxsim(a, b, a_mask, b_mask, chunk_elements, length_normalize, device)


def mean_maxsim_pairwise(
    a: Tokens,
    b: Tokens,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = True,
    device: str | torch.device | None = None,
) -> Tensor:
    """Return `maxsim_pairwise` divided by the number of each query's tokens."""
    return maxsim_pairwise(a, b, a_mask, b_mask, chunk_elements, length_normalize, device)


def _sides(
    a: Tokens, b: Tokens, a_mask: Any, b_mask: Any, device: Any
) -> tuple[list[Tensor], list[Tensor], torch.device]:
    """Return the token vectors of each text without padding, and the device of the documents."""
    home = _device(b) or _device(a) or torch.device("cpu")
    place = home if device is None else torch.device(device)
    return _unpadded(a, a_mask, "a_mask", place), _unpadded(b, b_mask, "b_mask", place), home


def _device(side: Tokens) -> torch.device | None:
    first = next(iter(side), None) if isinstance(side, list) else side
    return first.device if isinstance(first, Tensor) else None


def _unpadded(side: Tokens, mask: Any, name: str, device: torch.device) -> list[Tensor]:
    rows = [_tensor(row) for row in side] if isinstance(side, list) else _tensor(side)
    if isinstance(rows, Tensor) and rows.ndim == 2:
        rows = rows[None]
        mask = mask[None] if isinstance(mask, Tensor) and mask.ndim == 1 else mask
    if mask is None and isinstance(rows, Tensor):
        mask = rows.any(-1)  # a row of zeros is padding
    if mask is not None and not isinstance(mask, (list, tuple, Tensor, np.ndarray)):
        raise TypeError(f"{name} should be a tensor or a list of tensors, not {type(mask).__name__}.")
    if mask is None:
        return [row.to(device) for row in rows]
    longest = max((len(row) for row in rows), default=0)
    if isinstance(mask, (Tensor, np.ndarray)) and len(rows) and mask.shape[-1] != longest:
        raise InputError(f"{name} covers {mask.shape[-1]} tokens, but the longest text has {longest}.")
    kept = [torch.as_tensor(each).bool()[: len(row)] for row, each in zip(rows, mask, strict=True)]
    return [row[: len(each)][each.to(row.device)].to(device) for row, each in zip(rows, kept, strict=True)]


def _tensor(vectors: Any) -> Tensor:
    tensor = vectors if isinstance(vectors, Tensor) else torch.as_tensor(np.array(vectors))
    return tensor if tensor.is_floating_point() else tensor.float()


def _counts(queries: list[Tensor]) -> Tensor:
    return torch.tensor([max(len(query), 1) for query in queries], device=queries[0].device)


def _warn_of_empty(documents: list[Tensor]) -> None:
    count = sum(not len(document) for document in documents)
    if count:
        logger.warning(
            "%d documents have no token to score, as keep_only_token_ids or skiplist_words left none; they score %.0e.",
            *(count, EMPTY_SCORE),
        )
