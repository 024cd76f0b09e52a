"""CoSENT: pairs with higher scores have to have higher cosines.    B examples, D dimension."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective, positive
from munjang.objectives.distances import cosine


class CoSENT(Objective):
    """log(1 + Σ exp(scale · (cos_j − cos_i))) over all i, j of the batch where the score of i is the higher one."""

    extras = ("scores",)

    def __init__(self, scale: float = 20.0) -> None:
        super().__init__()
        self.scale = positive("scale", scale)

    def similarity(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        """Compare matching rows: [B]."""
        return cosine(u_BD, v_BD)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        # Sorted by score, the pairs over a pair are all that follow the last one with its score. So one running sum
        # from the end gives Σ exp(−cos_i) for every j, and no matrix of B * B is made.
        scores_B, order_B = extras["scores"].sort()
        values_B = self.similarity(*outputs)[order_B] * self.scale
        above_B = (-values_B).flip(0).logcumsumexp(0).flip(0)
        above_B = torch.cat([above_B, above_B.new_full((1,), float("-inf"))])  # nothing is over the highest
        first_above_B = torch.searchsorted(scores_B, scores_B, right=True)
        terms_B = values_B + above_B[first_above_B]
        return torch.cat([terms_B.new_zeros(1), terms_B]).logsumexp(0)
