"""Pooling: token vectors to one vector per text, in fp32.    T tokens of the whole batch, B texts, D width.

The names are those that checkpoints use. To add one: a function and a line in POOLERS.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from munjang.errors import unknown
from munjang.text.flat import cumulative
from munjang.text.packing import Packed
from munjang.types import Ints


def first(tokens_TD: Tensor, places_T: Tensor, lengths_B: Tensor) -> Tensor:
    """The first token of each text."""
    starts_B = lengths_B.cumsum(0) - lengths_B
    return _or_zero(tokens_TD, starts_B, lengths_B)


def last(tokens_TD: Tensor, places_T: Tensor, lengths_B: Tensor) -> Tensor:
    """The last token of each text."""
    return _or_zero(tokens_TD, lengths_B.cumsum(0) - 1, lengths_B)


def mean(tokens_TD: Tensor, places_T: Tensor, lengths_B: Tensor) -> Tensor:
    """Average over each text's own tokens; no tokens: the zero vector."""
    return _sum(tokens_TD, lengths_B) / lengths_B.clamp(min=1)[:, None]


def mean_sqrt_length(tokens_TD: Tensor, places_T: Tensor, lengths_B: Tensor) -> Tensor:
    """Sum over the square root of the number of tokens."""
    return _sum(tokens_TD, lengths_B) / lengths_B.clamp(min=1).sqrt()[:, None]


def weighted_mean(tokens_TD: Tensor, places_T: Tensor, lengths_B: Tensor) -> Tensor:
    """Average in which the n-th token of the text counts n times."""
    weights_T1 = (places_T + 1).float()[:, None]
    return _sum(tokens_TD * weights_T1, lengths_B) / _sum(weights_T1, lengths_B).clamp(min=1)


def maximum(tokens_TD: Tensor, places_T: Tensor, lengths_B: Tensor) -> Tensor:
    """The largest value of each component; no tokens: the zero vector."""
    highest_BD = torch.segment_reduce(tokens_TD, "max", lengths=lengths_B, axis=0, unsafe=True)
    return torch.where(lengths_B[:, None] > 0, highest_BD, torch.zeros_like(highest_BD))


def _sum(values_TD: Tensor, lengths_B: Tensor) -> Tensor:
    # segment_reduce adds in a fixed order; index_add_ on CUDA would not
    return torch.segment_reduce(values_TD, "sum", lengths=lengths_B, axis=0, unsafe=True)


def _or_zero(tokens_TD: Tensor, places_B: Tensor, lengths_B: Tensor) -> Tensor:
    if not len(tokens_TD):
        return tokens_TD.new_zeros(len(lengths_B), tokens_TD.shape[1])
    found_BD = tokens_TD[places_B.clamp(0, len(tokens_TD) - 1)]
    return torch.where(lengths_B[:, None] > 0, found_BD, torch.zeros_like(found_BD))


POOLERS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "cls": first,
    "max": maximum,
    "mean": mean,
    "mean_sqrt_len_tokens": mean_sqrt_length,
    "weightedmean": weighted_mean,
    "lasttoken": last,
}


def check(modes: Sequence[str]) -> tuple[str, ...]:
    """Refuse names that are not in the table."""
    for mode in modes:
        if mode not in POOLERS:
            raise unknown("pooling", mode, POOLERS)
    return tuple(modes)


def pool(tokens_TD: Tensor, batch: Packed, modes: Sequence[str]) -> Tensor:
    """One vector per text: each mode's result, side by side, in fp32 (bf16 sums drift past a few hundred tokens)."""
    places_T, skip = _places(batch) if "weightedmean" in modes else batch.positions_T, batch.skip
    if skip is not None and skip.any():
        kept = torch.from_numpy(_kept(batch.lengths, skip)).to(tokens_TD.device)
        tokens_TD, places_T, lengths = tokens_TD[kept], places_T[kept], np.maximum(batch.lengths - skip, 0)
        lengths_B = torch.from_numpy(lengths).to(tokens_TD.device)
    else:
        lengths_B = batch.starts_B.diff().long()  # already there: no copy to wait for
    tokens_TD = tokens_TD.float()
    return torch.cat([POOLERS[mode](tokens_TD, places_T, lengths_B) for mode in modes], dim=-1)


def _places(batch: Packed) -> Tensor:
    """0, 1, 2, ... in every text; positions leave a padding token that a text spells out uncounted (RoBERTa)."""
    return torch.arange(batch.num_tokens, device=batch.ids_T.device) - batch.bounds[0]


def _kept(lengths: Ints, skip: Ints) -> Ints:
    places = np.arange(int(lengths.sum())) - np.repeat(cumulative(lengths)[:-1], lengths)
    return np.flatnonzero(places >= np.repeat(skip, lengths))
