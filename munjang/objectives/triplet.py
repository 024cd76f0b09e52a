"""The paper's triplet objective: the positive has to be closer than the negative by a margin.

B examples, D dimension.
"""

from collections.abc import Sequence

from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.distances import DISTANCES


class Triplet(Objective):
    """max(d(anchor, positive) − d(anchor, negative) + margin, 0)."""

    num_texts = (3, 3)
    is_separable = True

    def __init__(self, margin: float = 1.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin, self.distance = margin, choose("distance", distance, DISTANCES)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        anchors_BD, positives_BD, negatives_BD = outputs
        farther_B = self.distance(anchors_BD, positives_BD) - self.distance(anchors_BD, negatives_BD)
        return (farther_B + self.margin).relu().mean()
