"""Distillation of margins: the positive leads each negative by as much as a teacher says.

B queries, D dimension, K candidates.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.candidates import margin_loss, margins
from munjang.objectives.distances import SIMILARITIES


class MarginMSE(Objective):
    """Mean squared error of s(query, positive) − s(query, negative) against the teacher's, over all negatives."""

    num_texts = (3, None)
    extras = ("scores",)
    takes_margins = True
    is_separable = True

    def __init__(self, similarity: str = "dot") -> None:
        super().__init__()
        self.similarity = choose("similarity", similarity, SIMILARITIES)

    def values(self, outputs: Sequence[Tensor]) -> Tensor:
        """Return the student's score of each candidate: [B, K]."""
        return torch.stack([self.similarity(outputs[0], candidate_BD) for candidate_BD in outputs[1:]], dim=1)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return margin_loss(self.values(outputs), extras)

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        like_BK = extras["scores"].new_empty(len(outputs[0]), len(outputs) - 1)
        return margins(extras, like_BK)[1].sum()
