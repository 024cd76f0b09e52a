"""Score matrices in blocks of rows: no tensor of all examples times all candidates is ever kept.

R rows, C candidates.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

ROWS = 512  # at 8,192 candidates 16 MB of fp32 a block
NUMBERS = 2**24  # or as many rows as make a block of 64 MB of fp32


def sum_by_rows(sums_of: Callable[[slice], Tensor], num_rows: int, rows: int = ROWS) -> Tensor:
    """What all rows cost together, where `sums_of(slice)` gives the costs of some rows [R] or [R, anything].

    The scores inside are computed once more for the gradient, block by block, instead of being kept.

    >>> sum_by_rows(lambda part: torch.arange(4.0)[part], 4, rows=3)
    tensor(6.)
    """
    total: Tensor | None = None
    for start in range(0, num_rows, rows):
        part = slice(start, min(start + rows, num_rows))
        if num_rows <= rows or not torch.is_grad_enabled():
            sums = sums_of(part).sum(0)
        else:
            # no dropout in here, so no random state has to be kept
            sums = checkpoint(lambda part: sums_of(part).sum(0), part, use_reentrant=False, preserve_rng_state=False)
        total = sums if total is None else total + sums
    assert total is not None, "an empty batch has no loss"
    return total


def mean_by_rows(loss_of: Callable[[slice], Tensor], num_rows: int, rows: int = ROWS) -> Tensor:
    """The mean of the losses of all rows, where `loss_of(slice)` gives those of some rows [R].

    >>> mean_by_rows(lambda part: torch.arange(4.0)[part], 4, rows=3)
    tensor(1.5000)
    """
    return sum_by_rows(loss_of, num_rows, rows) / num_rows
