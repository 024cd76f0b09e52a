"""Triplets that the labels of a batch allow: all of them, the hardest, or the semi-hard ones.

B examples, D dimension, R anchors of a block.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.blocks import MAX_BLOCK_NUMBERS, sum_by_rows
from munjang.objectives.distances import DISTANCES_OF_ALL

MIN_COST = 1e-16  # a triplet that costs less is solved


class BatchTriplets(Objective):
    """The triplet loss over single texts with labels."""

    num_texts = (1, 1)
    extras = ("labels",)
    sampler = "by_label"  # a batch without two texts of a label has no triplet

    def __init__(self, margin: float = 5.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin, self.distance = margin, choose("distance", distance, DISTANCES_OF_ALL)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        labels_B = extras["labels"]
        is_same_BB = labels_B[:, None] == labels_B
        is_positive_BB = is_same_BB & ~torch.eye(len(labels_B), dtype=torch.bool, device=labels_B.device)
        return self.cost(self.distance(outputs[0], outputs[0]), is_same_BB, is_positive_BB)

    def cost(self, distances_BB: Tensor, is_same_BB: Tensor, is_positive_BB: Tensor) -> Tensor:
        """Return the mean cost; `is_same_BB` says where labels are equal, `is_positive_BB` leaves out the diagonal."""
        raise NotImplementedError


class BatchAllTriplet(BatchTriplets):
    """The triplet loss over single texts with labels, averaged over the triplets that still cost something.

    The mean over all triplets would fade as most of them are solved (Hermans et al. 2017).
    """

    def cost(self, distances_BB: Tensor, is_same_BB: Tensor, is_positive_BB: Tensor) -> Tensor:
        size = len(distances_BB)

        def costs_of(rows: slice) -> Tensor:
            costs_RBB = distances_BB[rows, :, None] - distances_BB[rows, None, :] + self.margin
            is_triplet_RBB = is_positive_BB[rows, :, None] & ~is_same_BB[rows, None, :]
            is_costly_RBB = is_triplet_RBB & (costs_RBB > MIN_COST)
            sums_R = costs_RBB.masked_fill(~is_costly_RBB, 0).sum((1, 2))
            return torch.stack([sums_R, is_costly_RBB.sum((1, 2)).to(sums_R.dtype)], dim=1)

        cost, count = sum_by_rows(costs_of, size, max(1, MAX_BLOCK_NUMBERS // size**2))
        return cost / count.clamp(min=1)


class BatchHardTriplet(BatchTriplets):
    """The triplet loss over single texts with labels, of the hardest triplet of each anchor (Hermans et al. 2017).

    An anchor without a positive or a negative has no triplet and does not count.
    """

    def cost(self, distances_BB: Tensor, is_same_BB: Tensor, is_positive_BB: Tensor) -> Tensor:
        # 0 where there is none, not infinity: such anchors are left out below, and 0 * infinity would be NaN
        farthest_B = distances_BB.masked_fill(~is_positive_BB, 0).amax(1)
        beyond = distances_BB.detach().amax() + 1
        closest_B = torch.where(is_same_BB, beyond, distances_BB).amin(1)
        has_triplet_B = is_positive_BB.any(1) & ~is_same_BB.all(1)
        costs_B = (farthest_B - closest_B + self.margin).relu() * has_triplet_B
        return costs_B.sum() / has_triplet_B.sum().clamp(min=1)


class BatchSemiHardTriplet(BatchTriplets):
    """The triplet loss over single texts with labels, of negatives that are right but not by the margin (FaceNet).

    A positive pair is compared with the closest negative farther away than the positive; where every negative is
    closer, with the farthest of them.
    """

    def cost(self, distances_BB: Tensor, is_same_BB: Tensor, is_positive_BB: Tensor) -> Tensor:
        is_pair_BB = is_positive_BB & ~is_same_BB.all(1, keepdim=True)
        # Sorted negatives, and the position of each positive among them: B * B numbers instead of B * B * B
        order_BB = distances_BB.detach().masked_fill(is_same_BB, float("inf")).argsort(dim=1)
        negatives_BB = distances_BB.gather(1, order_BB)
        num_negatives_B1 = (~is_same_BB).sum(1, keepdim=True)
        known_BB = negatives_BB.detach().masked_fill(
            torch.arange(len(distances_BB), device=distances_BB.device) >= num_negatives_B1, float("inf")
        )
        position_BB = torch.searchsorted(known_BB, distances_BB.detach().contiguous(), right=True)
        chosen_BB = negatives_BB.gather(1, position_BB.minimum(num_negatives_B1 - 1).clamp(min=0))
        costs_BB = (distances_BB - chosen_BB + self.margin).relu().masked_fill(~is_pair_BB, 0)
        return costs_BB.sum() / is_pair_BB.sum().clamp(min=1)
