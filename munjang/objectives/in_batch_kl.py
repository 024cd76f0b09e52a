"""Distillation of neighbourhoods: each text of a batch is as close to the others as the teacher finds it.

B examples of the whole batch, D dimension, K text columns, M = K * B texts, R rows of a block.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose, positive
from munjang.objectives.blocks import BLOCK_ROWS, mean_by_rows
from munjang.objectives.distances import unit
from munjang.objectives.embedding_mse import TARGETS


class InBatchKL(Objective):
    """Kullback-Leibler divergence of the student's softmax over all other texts of the batch from the teacher's.

    Cosines are what is compared, so the widths may differ and the student keeps its own space: a good student loses
    less than with `embedding_mse`. With `target="first"` the columns are translations: the teacher reads the first
    one, and each text has to find its own translation and the neighbours of both in every language.
    """

    num_texts = (1, None)
    extras = ("teacher",)

    def __init__(
        self,
        temperature: float = 0.05,
        teacher_temperature: float | None = None,
        target: str = "first",
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        super().__init__()
        self.temperature = positive("temperature", temperature)
        teacher_temperature = temperature if teacher_temperature is None else teacher_temperature
        self.teacher_temperature = positive("teacher_temperature", teacher_temperature)
        choose("target", target, TARGETS)
        self.target, self.block_rows = target, int(positive("block_rows", block_rows))

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        student_MD = torch.cat([unit(vectors_BD) for vectors_BD in outputs])
        teacher_BKD = unit(extras["teacher"]).to(student_MD.dtype)
        if self.target == "first":
            teacher_BKD = teacher_BKD[:, :1].expand(-1, len(outputs), -1)
        teacher_MD = teacher_BKD.transpose(0, 1).flatten(0, 1)

        def costs_of(rows: slice) -> Tensor:
            student_RM = _log_probabilities(student_MD, rows, self.temperature)
            teacher_RM = _log_probabilities(teacher_MD, rows, self.teacher_temperature)
            return (teacher_RM.exp() * (teacher_RM - student_RM)).sum(1)

        return mean_by_rows(costs_of, len(student_MD), self.block_rows)


def _log_probabilities(vectors_MD: Tensor, rows: slice, temperature: float) -> Tensor:
    """Return the log softmax over the similarities of each row to all texts but itself: [R, M]."""
    scores_RM = vectors_MD[rows] @ vectors_MD.t() / temperature
    # very low instead of -inf: its probability is 0, and 0 times -inf would be NaN
    lowest = torch.full_like(scores_RM[:, 0], torch.finfo(scores_RM.dtype).min / 4)
    return scores_RM.diagonal_scatter(lowest, rows.start).log_softmax(1)
