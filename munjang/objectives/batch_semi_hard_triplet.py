"""For each positive pair the closest negative that is farther away than the positive.    B examples, D width."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.choice import choose
from munjang.objectives.distances import DISTANCES_OF_ALL


class BatchSemiHardTriplet(Objective):
    """The triplet loss over single texts with labels, of negatives that are right but not by the margin (FaceNet).

    Where every negative is closer than the positive, the farthest of them is taken.
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
        is_pair_BB = is_positive_BB & ~is_same_BB.all(1, keepdim=True)
        # Sorted negatives, and where each positive would stand among them: B * B numbers instead of B * B * B
        order_BB = distances_BB.detach().masked_fill(is_same_BB, float("inf")).argsort(dim=1)
        negatives_BB = distances_BB.gather(1, order_BB)
        num_negatives_B1 = (~is_same_BB).sum(1, keepdim=True)
        known_BB = negatives_BB.detach().masked_fill(
            torch.arange(size, device=labels_B.device) >= num_negatives_B1, float("inf")
        )
        place_BB = torch.searchsorted(known_BB, distances_BB.detach().contiguous(), right=True)
        chosen_BB = negatives_BB.gather(1, place_BB.minimum(num_negatives_B1 - 1).clamp(min=0))
        costs_BB = (distances_BB - chosen_BB + self.margin).relu().masked_fill(~is_pair_BB, 0)
        return costs_BB.sum() / is_pair_BB.sum().clamp(min=1)
