"""Objectives over a list of candidates that only munjang.compat has.    B queries, K candidates."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from munjang.objectives.base import Extras, Objective
from munjang.objectives.candidates import one_logit, relevance

MIN_WEIGHT = 1e-10  # of a list without candidates


class PListMLELambdaWeight(nn.Module):
    """Weights of the places of a list: 2^(K - place) - 1, or those of a function."""

    def __init__(self, rank_discount_fn: object = None) -> None:
        super().__init__()
        self.rank_discount_fn = rank_discount_fn

    def forward(self, is_there_BK: Tensor) -> Tensor:
        """Return the weight of each place."""
        count = is_there_BK.shape[1]
        if self.rank_discount_fn is not None:
            given_BK: Tensor = self.rank_discount_fn(is_there_BK)  # type: ignore[operator]
            return given_BK
        places_K = torch.arange(1, count + 1, device=is_there_BK.device)
        sizes_B1 = is_there_BK.sum(1, keepdim=True)
        return (torch.pow(2.0, sizes_B1 - places_K) - 1.0) * is_there_BK


class PListMLE(Objective):
    """The likelihood of the order of a list, place by place."""

    needs = "logits"
    num_texts = (3, None)
    extras = ("scores",)

    def __init__(self, weight: PListMLELambdaWeight | None, respects_order: bool) -> None:
        super().__init__()
        self.weight, self.respects_order = weight, respects_order

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        logits_BK = one_logit(outputs)
        scores_BK, is_there_BK = relevance(extras, logits_BK)
        if not self.respects_order:
            order_BK = scores_BK.masked_fill(~is_there_BK, float("-inf")).sort(descending=True, dim=1).indices
            logits_BK, is_there_BK = logits_BK.gather(1, order_BK), is_there_BK.gather(1, order_BK)
        powers_BK = logits_BK.masked_fill(~is_there_BK, -1e16)
        rest_BK = powers_BK.flip(1).logcumsumexp(1).flip(1)
        costs_BK = (rest_BK - powers_BK).masked_fill(~is_there_BK, 0)
        if self.weight is not None:
            weights_BK = self.weight(is_there_BK)
            costs_BK = costs_BK * weights_BK / (weights_BK.sum(1, keepdim=True) + MIN_WEIGHT)
        return costs_BK.sum(1).mean()


class ADRMSE(Objective):
    """Squared errors of approximate ranks, discounted by the true rank."""

    needs = "logits"
    num_texts = (3, None)
    extras = ("scores",)

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        logits_BK = one_logit(outputs)
        scores_BK, is_there_BK = relevance(extras, logits_BK)
        ahead_BKK = torch.sigmoid(self.alpha * (logits_BK[:, None, :] - logits_BK[:, :, None]))
        ranks_BK = 1 + (ahead_BKK * is_there_BK[:, None, :]).sum(2) - 0.5 * is_there_BK
        theirs_BKK, own_BKK = scores_BK[:, None, :], scores_BK[:, :, None]
        greater_BK = ((theirs_BKK > own_BKK) & is_there_BK[:, None, :]).sum(2)
        equal_BK = ((theirs_BKK == own_BKK) & is_there_BK[:, None, :]).sum(2)
        true_BK = greater_BK + (equal_BK + 1) / 2
        costs_BK = (true_BK - ranks_BK) ** 2 / torch.log2(true_BK + 1)
        return costs_BK.masked_fill(~is_there_BK, 0).sum() / is_there_BK.sum()
