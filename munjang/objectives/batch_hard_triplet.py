"""For each text its farthest positive and its closest negative of the batch.    B examples, D width."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.choice import choose
from munjang.objectives.distances import DISTANCES_OF_ALL


class BatchHardTriplet(Objective):
    """The triplet loss over single texts with labels, of the hardest triplet of each anchor (Hermans et al. 2017).

    An anchor without a positive or a negative has no triplet and does not count.
    """

    num_texts = (1, 1)
    extras = ("labels",)

    def __init__(self, margin: float = 5.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin, self.distance = margin, choose("distance", distance, DISTANCES_OF_ALL)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        labels_B = extras["labels"]
        distances_BB = self.distance(outputs[0], outputs[0])
        is_same_BB = labels_B[:, None] == labels_B
        is_positive_BB = is_same_BB & ~torch.eye(len(labels_B), dtype=torch.bool, device=labels_B.device)
        # 0 where there is none, not infinity: such anchors are left out below, and 0 * infinity would be NaN
        farthest_B = distances_BB.masked_fill(~is_positive_BB, 0).amax(1)
        beyond = distances_BB.detach().amax() + 1
        closest_B = torch.where(is_same_BB, beyond, distances_BB).amin(1)
        has_triplet_B = is_positive_BB.any(1) & ~is_same_BB.all(1)
        costs_B = (farthest_B - closest_B + self.margin).relu() * has_triplet_B
        return costs_B.sum() / has_triplet_B.sum().clamp(min=1)
