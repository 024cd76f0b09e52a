"""Contrastive: similar pairs close together, others at least a margin apart.    B examples, D dimension."""

from collections.abc import Sequence

from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.distances import DISTANCES


class Contrastive(Objective):
    """½ (y d² + (1 − y) max(margin − d, 0)²), where the label y is 1 for similar pairs and 0 for others."""

    extras = ("labels",)
    is_separable = True

    def __init__(self, margin: float = 0.5, distance: str = "cosine") -> None:
        super().__init__()
        self.margin, self.distance = margin, choose("distance", distance, DISTANCES)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        distances_B, labels_B = self.distance(*outputs), extras["labels"]
        apart_B = (self.margin - distances_B).relu()
        return (labels_B * distances_B**2 + (1 - labels_B) * apart_B**2).mean() / 2
