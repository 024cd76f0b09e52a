"""Compute large score matrices in blocks of rows: no tensor of all examples times all candidates is ever kept.

R rows of a block, N places, W dimension of a word's embedding, V words.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

BLOCK_ROWS = 512  # at 8,192 candidates 16 MB of fp32 a block
MAX_BLOCK_NUMBERS = 2**24  # 64 MB of fp32, where the rows of a block follow from their length


def sum_by_rows(costs_of: Callable[[slice], Tensor], num_rows: int, block_rows: int = BLOCK_ROWS) -> Tensor:
    """Add up the costs of all rows, where `costs_of(slice)` gives the costs of some rows [R] or [R, anything].

    The scores inside are computed once more for the gradient, block by block, instead of being kept.

    >>> sum_by_rows(lambda rows: torch.arange(4.0)[rows], 4, block_rows=3)
    tensor(6.)
    """
    total: Tensor | None = None
    for start in range(0, num_rows, block_rows):
        rows = slice(start, min(start + block_rows, num_rows))
        if num_rows <= block_rows or not torch.is_grad_enabled():
            costs = costs_of(rows).sum(0)
        else:
            # no dropout in here, so no random state has to be kept
            costs = checkpoint(lambda rows: costs_of(rows).sum(0), rows, use_reentrant=False, preserve_rng_state=False)
        total = costs if total is None else total + costs
    assert total is not None, "an empty batch has no loss"
    return total


def mean_by_rows(costs_of: Callable[[slice], Tensor], num_rows: int, block_rows: int = BLOCK_ROWS) -> Tensor:
    """Average the costs of all rows, where `costs_of(slice)` gives those of some rows [R].

    >>> mean_by_rows(lambda rows: torch.arange(4.0)[rows], 4, block_rows=3)
    tensor(1.5000)
    """
    return sum_by_rows(costs_of, num_rows, block_rows) / num_rows


def word_loss(states_NW: Tensor, targets_N: Tensor, words_VW: Tensor, bias_V: Tensor) -> Tensor:
    """Return the mean cross-entropy of the target words, 0 without any. N * V logits are never kept."""
    if not len(targets_N):
        return states_NW.sum() * 0 + bias_V.sum() * 0

    def costs_of(rows: slice) -> Tensor:
        logits_RV = F.linear(states_NW[rows], words_VW.to(states_NW.dtype), bias_V)
        return F.cross_entropy(logits_RV, targets_N[rows], reduction="none")

    return mean_by_rows(costs_of, len(targets_N), max(1, MAX_BLOCK_NUMBERS // len(words_VW)))
