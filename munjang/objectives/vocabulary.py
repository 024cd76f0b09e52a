"""The product with all words, in blocks.    N places, W width of a word's embedding, V words, R places of a block."""

import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.blocks import NUMBERS, mean_by_rows


def word_loss(states_NW: Tensor, targets_N: Tensor, words_VW: Tensor, bias_V: Tensor) -> Tensor:
    """Mean cross-entropy of the words wanted; 0 where no place is left. N * V logits are never kept."""
    if not len(targets_N):
        return states_NW.sum() * 0 + bias_V.sum() * 0

    def loss_of(part: slice) -> Tensor:
        logits_RV = F.linear(states_NW[part], words_VW.to(states_NW.dtype), bias_V)
        return F.cross_entropy(logits_RV, targets_N[part], reduction="none")

    return mean_by_rows(loss_of, len(targets_N), max(1, NUMBERS // len(words_VW)))
