"""Every triplet that the labels of a batch allow.    B examples, D width, R anchors of a block."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.blocks import NUMBERS, sum_by_rows
from munjang.objectives.choice import choose
from munjang.objectives.distances import DISTANCES_OF_ALL

COSTS = 1e-16  # a triplet that costs less is solved


class BatchAllTriplet(Objective):
    """The triplet loss over single texts with labels, averaged over the triplets that still cost something.

    The mean over all triplets would fade as most of them are solved (Hermans et al. 2017).
    """

    num_texts = (1, 1)
    extras = ("labels",)

    def __init__(self, margin: float = 5.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin, self.distance = margin, choose("distance", distance, DISTANCES_OF_ALL)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        labels_B, size = extras["labels"], len(outputs[0])
        distances_BB = self.distance(outputs[0], outputs[0])
        is_same_BB = labels_B[:, None] == labels_B
        is_positive_BB = is_same_BB & ~torch.eye(size, dtype=torch.bool, device=labels_B.device)

        def costs_of(part: slice) -> Tensor:
            costs_RBB = distances_BB[part, :, None] - distances_BB[part, None, :] + self.margin
            is_triplet_RBB = is_positive_BB[part, :, None] & ~is_same_BB[part, None, :]
            is_costly_RBB = is_triplet_RBB & (costs_RBB > COSTS)
            sums_R = costs_RBB.masked_fill(~is_costly_RBB, 0).sum((1, 2))
            return torch.stack([sums_R, is_costly_RBB.sum((1, 2)).to(sums_R.dtype)], dim=1)

        cost, count = sum_by_rows(costs_of, size, max(1, NUMBERS // size**2))
        return cost / count.clamp(min=1)
