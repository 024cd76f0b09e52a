"""Distillation of directions: the student's vectors have to point where the teacher's do.    D dimension."""

from torch import Tensor

from munjang.objectives.base import positive
from munjang.objectives.distances import cosine
from munjang.objectives.embedding_mse import EmbeddingMSE


class EmbeddingCosine(EmbeddingMSE):
    """(1 − cosine) · scale against the teacher's vectors; another width is met by a learned linear map.

    Lengths don't matter, and the default scale makes it weigh as much as the objectives that divide cosines by 0.05.
    """

    def __init__(self, width: int, teacher_width: int, target: str = "first", scale: float = 20.0) -> None:
        super().__init__(width, teacher_width, target)
        self.scale = positive("scale", scale)

    def compare(self, student_BKD: Tensor, teacher_BKD: Tensor) -> Tensor:
        return (1 - cosine(student_BKD, teacher_BKD)).mean() * self.scale
