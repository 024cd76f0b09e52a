"""Cross-encoder: candidates share the probability as their relevance does.    B queries, K candidates."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.candidates import one_logit, relevance


class ListNet(Objective):
    """Cross-entropy of the softmax over a query's candidates against the softmax of their relevance."""

    needs = "logits"
    num_texts = (3, None)
    extras = ("scores",)
    is_separable = True

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        logits_BK = one_logit(outputs)
        scores_BK, is_there_BK = relevance(extras, logits_BK)
        lowest = torch.finfo(logits_BK.dtype).min  # and not -inf: no NaN for a query without candidates
        shares_BK = logits_BK.masked_fill(~is_there_BK, lowest).log_softmax(1)
        wanted_BK = scores_BK.masked_fill(~is_there_BK, lowest).softmax(1)
        costs_BK = (-wanted_BK * shares_BK).masked_fill(~is_there_BK, 0)
        return costs_BK.sum() / is_there_BK.any(1).sum().clamp(min=1)

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return (~extras["scores"].isnan()).any(1).sum()
