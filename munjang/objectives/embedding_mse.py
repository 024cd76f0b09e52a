"""Distillation of vectors: the student's have to be the teacher's.    B examples, D and Dt dimensions of the two."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.distances import full

# Which of the teacher's vectors a column has to meet
TARGETS = {
    "first": "that of the first column, for translations: teacher(en) ≈ student(en) ≈ student(ko)",
    "own": "its own",
}


class EmbeddingMSE(Objective):
    """Mean squared error against the teacher's vectors; another width is met by a learned linear map of the student's.

    The map is dropped after training.
    """

    num_texts = (1, None)
    extras = ("teacher",)
    is_separable = True

    def __init__(self, width: int, teacher_width: int, target: str = "first") -> None:
        super().__init__()
        choose("target", target, TARGETS)
        self.target = target
        self.is_by_component = width == teacher_width
        self.projection = None if width == teacher_width else nn.Linear(width, teacher_width)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        student_BKD = torch.stack(list(outputs), dim=1)
        if self.projection is not None:
            student_BKD = self.projection(student_BKD.to(self.projection.weight.dtype))
        teacher_BKD = extras["teacher"]
        if self.target == "first":
            teacher_BKD = teacher_BKD[:, :1].expand(-1, len(outputs), -1)
        student_BKD = full(student_BKD)
        return self.compare(student_BKD, teacher_BKD.to(student_BKD.dtype))

    def compare(self, student_BKD: Tensor, teacher_BKD: Tensor) -> Tensor:
        """Return the mean cost of the difference."""
        return F.mse_loss(student_BKD, teacher_BKD)
