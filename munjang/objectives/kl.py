"""Distillation of rankings: candidates share the probability as a teacher shares it.

B queries, D dimension, K candidates.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose, positive
from munjang.objectives.candidates import relevance
from munjang.objectives.distances import SIMILARITIES


class KL(Objective):
    """Kullback-Leibler divergence of the student's softmax over candidates from the teacher's, times `scale`.

    `teacher_temperature` is for a teacher on another scale, such as logits beside cosines; None: the same temperature.
    `scale` None: temperature², which keeps the gradient's size where the temperature is high, as in distillation of
    classes. Where it is low, as cosines need, that leaves next to nothing beside other objectives; 1 weighs as much as
    in-batch negatives of that temperature.
    """

    num_texts = (3, None)
    extras = ("scores",)
    is_separable = True

    def __init__(
        self,
        temperature: float = 1.0,
        teacher_temperature: float | None = None,
        similarity: str = "dot",
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.temperature = positive("temperature", temperature)
        teacher_temperature = temperature if teacher_temperature is None else teacher_temperature
        self.teacher_temperature = positive("teacher_temperature", teacher_temperature)
        self.scale = self.temperature**2 if scale is None else positive("scale", scale)
        self.similarity = choose("similarity", similarity, SIMILARITIES)

    def values(self, outputs: Sequence[Tensor]) -> Tensor:
        """Return the student's score of each candidate: [B, K]."""
        return torch.stack([self.similarity(outputs[0], candidate_BD) for candidate_BD in outputs[1:]], dim=1)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        values_BK = self.values(outputs)
        scores_BK, is_there_BK = relevance(extras, values_BK)
        # very low instead of -inf: a query without candidates costs 0 then, and not NaN
        lowest = torch.finfo(values_BK.dtype).min
        student_BK = (values_BK / self.temperature).masked_fill(~is_there_BK, lowest).log_softmax(1)
        teacher_BK = (scores_BK / self.teacher_temperature).masked_fill(~is_there_BK, lowest).log_softmax(1)
        costs_BK = (teacher_BK.exp() * (teacher_BK - student_BK)).masked_fill(~is_there_BK, 0)
        return costs_BK.sum() / is_there_BK.any(1).sum().clamp(min=1) * self.scale

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return (~extras["scores"].isnan()).any(1).sum()
