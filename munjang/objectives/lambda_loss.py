"""Cross-encoder: pairs of candidates in the right order, weighted by what the order is worth to NDCG.

B queries, K candidates; both K axes are sorted by the model's scores.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose, positive
from munjang.objectives.candidates import one_logit, relevance

NDCG2_WEIGHT = 10.0  # in "ndcg2++"
MIN_DCG = 1e-10  # of a query without relevant candidates


def _apart(values: Tensor) -> Tensor:
    return (values[..., :, None] - values[..., None, :]).abs()


def ndcg1(gains_BK: Tensor, discounts_K: Tensor) -> Tensor:
    """Weigh a pair by the first candidate's gain at its rank."""
    return (gains_BK / discounts_K)[:, :, None].expand(-1, -1, len(discounts_K))


def ndcg2(gains_BK: Tensor, discounts_K: Tensor) -> Tensor:
    """Weigh a pair by its gains and by the discount between two ranks as far apart at the top of the list."""
    steps_K = torch.cat([discounts_K.new_zeros(1), 1 / discounts_K[:-1] - 1 / discounts_K[1:]])
    places_K = torch.arange(len(discounts_K), device=discounts_K.device)
    return steps_K[_apart(places_K)] * _apart(gains_BK)


def lambda_rank(gains_BK: Tensor, discounts_K: Tensor) -> Tensor:
    """Weigh a pair by the change of NDCG if the two were swapped."""
    return _apart(1 / discounts_K) * _apart(gains_BK)


# Weights [B, K, K] of pairs by their gains and by the discounts of places (Wang et al. 2018)
WEIGHTINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "none": lambda gains_BK, discounts_K: torch.ones_like(gains_BK[:, :, None] * discounts_K),
    "ndcg1": ndcg1,
    "ndcg2": ndcg2,
    "lambda_rank": lambda_rank,
    "ndcg2++": lambda gains_BK, discounts_K: (
        NDCG2_WEIGHT * ndcg2(gains_BK, discounts_K) + lambda_rank(gains_BK, discounts_K)
    ),
}


class LambdaLoss(Objective):
    """−weight · log₂ σ(sigma · (s_i − s_j)), averaged over the pairs of a query where i is the more relevant one.

    With `k`, only pairs count of which one is among the best k.
    """

    needs = "logits"
    num_texts = (3, None)
    extras = ("scores",)
    is_separable = True

    def __init__(self, weighting: str = "ndcg2++", k: int | None = None, sigma: float = 1.0) -> None:
        super().__init__()
        self.weighting, self.k, self.sigma = choose("weighting", weighting, WEIGHTINGS), k, positive("sigma", sigma)
        self.counts_all = weighting == "ndcg1"  # it is a sum over candidates, written as one over pairs

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        logits_BK, scores_BK, is_counted_BKK = self._sorted(outputs, extras)
        places_K = torch.arange(1, logits_BK.shape[1] + 1, device=logits_BK.device, dtype=logits_BK.dtype)
        discounts_K = (1 + places_K).log2()
        gains_BK = 2 ** scores_BK.clamp(min=0) - 1
        ideal_BK = gains_BK.sort(descending=True, dim=1).values / discounts_K
        gains_BK = gains_BK / ideal_BK[:, : self.k].sum(1, keepdim=True).clamp(min=MIN_DCG)
        ahead_BKK = logits_BK[:, :, None] - logits_BK[:, None, :]
        costs_BKK = -self.weighting(gains_BK, discounts_K) * F.logsigmoid(self.sigma * ahead_BKK) / math.log(2)
        return costs_BKK.masked_fill(~is_counted_BKK, 0).sum() / is_counted_BKK.sum().clamp(min=1)

    def _sorted(self, outputs: Sequence[Tensor], extras: Extras) -> tuple[Tensor, Tensor, Tensor]:
        """Sort logits and scores, best logit first and missing candidates last, and mark the pairs that count."""
        logits_BK = one_logit(outputs)
        scores_BK, is_there_BK = relevance(extras, logits_BK)
        order_BK = logits_BK.detach().masked_fill(~is_there_BK, float("-inf")).sort(descending=True, dim=1).indices
        logits_BK, scores_BK = logits_BK.gather(1, order_BK), scores_BK.gather(1, order_BK)
        is_there_BK = is_there_BK.gather(1, order_BK)
        is_counted_BKK = is_there_BK[:, :, None] & is_there_BK[:, None, :]
        if not self.counts_all:
            is_counted_BKK = is_counted_BKK & (scores_BK[:, :, None] > scores_BK[:, None, :])
        if self.k is not None:
            is_top_K = torch.arange(logits_BK.shape[1], device=logits_BK.device) < self.k
            is_counted_BKK = is_counted_BKK & (is_top_K[:, None] | is_top_K)
        return logits_BK, scores_BK, is_counted_BKK

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return self._sorted(outputs, extras)[2].sum()
