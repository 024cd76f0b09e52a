"""Contrastive over the hard pairs of a batch only.    B examples, D dimension."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.distances import DISTANCES


class OnlineContrastive(Objective):
    """d² of similar pairs farther than the closest other pair; max(margin − d, 0)² of others closer than the farthest.

    A sum, not a mean: the number of hard pairs is what shrinks as training goes on.
    """

    extras = ("labels",)

    def __init__(self, margin: float = 0.5, distance: str = "cosine") -> None:
        super().__init__()
        self.margin, self.distance = margin, choose("distance", distance, DISTANCES)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        distances_B, is_similar_B = self.distance(*outputs), extras["labels"] == 1
        known_B, inf = distances_B.detach(), float("inf")
        # a batch of one kind has no other pairs to compare with: then its own mean is the limit
        mean = known_B.mean()
        farthest = torch.where(is_similar_B.any(), known_B.masked_fill(~is_similar_B, -inf).amax(), mean)
        closest = torch.where(is_similar_B.all(), mean, known_B.masked_fill(is_similar_B, inf).amin())
        is_hard_B = torch.where(is_similar_B, known_B > closest, known_B < farthest)
        costs_B = torch.where(is_similar_B, distances_B, (self.margin - distances_B).relu()) ** 2
        return costs_B.masked_fill(~is_hard_B, 0).sum()
