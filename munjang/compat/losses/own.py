"""Objectives that only munjang.compat has, for losses of theirs without one of ours.    B examples, D dimension."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.objectives.base import Extras, Objective
from munjang.objectives.batch_triplets import BatchHardTriplet


class CosineScores(Objective):
    """Any function of a loss over cosines, and scores."""

    extras = ("scores",)

    def __init__(self, loss: nn.Module, change: nn.Module) -> None:
        super().__init__()
        self.loss, self.change = loss, change

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        loss: Tensor = self.loss(self.change(torch.cosine_similarity(outputs[0], outputs[1])), extras["scores"])
        return loss


class SoftMarginTriplet(BatchHardTriplet):
    """The hardest triplet of each anchor, with a softplus in the place of the margin."""

    def cost(self, distances_BB: Tensor, is_same_BB: Tensor, is_positive_BB: Tensor) -> Tensor:
        farthest_B = distances_BB.masked_fill(~is_positive_BB, 0).amax(1)
        beyond = distances_BB.detach().amax() + 1
        closest_B = torch.where(is_same_BB, beyond, distances_BB).amin(1)
        has_triplet_B = is_positive_BB.any(1) & ~is_same_BB.all(1)
        return (F.softplus(farthest_B - closest_B) * has_triplet_B).sum() / has_triplet_B.sum().clamp(min=1)


class MegaBatchMargin(Objective):
    """Positives above one margin, the hardest other positive of the batch below another."""

    def __init__(self, positive_margin: float, negative_margin: float) -> None:
        super().__init__()
        self.positive_margin, self.negative_margin = positive_margin, negative_margin

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        anchors_BD, positives_BD = (F.normalize(rows, dim=-1) for rows in outputs)
        cosines_BB = anchors_BD @ positives_BD.t()
        hardest_B = cosines_BB.clone().fill_diagonal_(float("-inf")).amax(1)
        costs_B = (self.positive_margin - cosines_BB.diagonal()).relu() + (hardest_B - self.negative_margin).relu()
        return costs_B.mean()


class EmbeddingDistance(Objective):
    """The distance from a teacher's vectors, averaged over the columns; a linear map where widths differ."""

    num_texts = (1, None)
    extras = ("teacher",)

    def __init__(self, distance: str, width: int, projected: int | None) -> None:
        super().__init__()
        self.distance = distance
        self.projection = None if projected is None else nn.Linear(width, projected)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        losses = []
        for student_BD, teacher_BD in zip(outputs, extras["teacher"].unbind(1), strict=True):
            mapped_BD = student_BD if self.projection is None else self.projection(student_BD)
            wanted_BD = teacher_BD.detach().to(mapped_BD.dtype)
            if self.distance == "mse":
                losses.append(F.mse_loss(mapped_BD, wanted_BD))
            elif self.distance == "l2":
                losses.append((mapped_BD - wanted_BD).norm(dim=-1).mean())
            else:
                losses.append((1 - F.cosine_similarity(mapped_BD, wanted_BD, dim=-1)).mean())
        return torch.stack(losses).mean()


class Concatenated(Objective):
    """A linear layer over the two vectors, their difference and their product, and any loss over its outputs."""

    extras = ("labels",)

    def __init__(self, parts: tuple[bool, bool, bool], width: int, num_labels: int, loss: Any) -> None:
        super().__init__()
        self.parts, self.loss = parts, loss
        self.head = nn.Linear((2 * parts[0] + parts[1] + parts[2]) * width, num_labels)

    def logits(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        """Return the outputs of the layer."""
        all_parts = ([u_BD, v_BD], [(u_BD - v_BD).abs()], [u_BD * v_BD])
        chosen = [rows for is_in, part in zip(self.parts, all_parts, strict=True) if is_in for rows in part]
        found: Tensor = self.head(torch.cat(chosen, dim=1).to(self.head.weight.dtype))
        return found

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        loss: Tensor = self.loss(self.logits(*outputs), extras["labels"])
        return loss


class SpreadOut(Objective):
    """Cosines of texts that don't belong together have the mean and the second moment of random directions."""

    num_texts = (1, None)

    def __init__(
        self, similarity: Callable[[Tensor, Tensor], Tensor], mean: float | None, moment: float | None, total: str
    ) -> None:
        super().__init__()
        self.similarity, self.mean, self.moment, self.total = similarity, mean, moment, total

    def parts(self, outputs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the two terms, added up or averaged over the columns."""
        means, moments = [], []
        for rows_BD in outputs:
            scores_BB = self.similarity(rows_BD, rows_BD)
            others = scores_BB[~torch.eye(len(rows_BD), dtype=torch.bool, device=rows_BD.device)]
            means.append(others.mean() ** 2)
            moments.append(((others**2).mean() - 1 / rows_BD.shape[-1]).relu())
        both = torch.stack(means), torch.stack(moments)
        return (both[0].mean(), both[1].mean()) if self.total == "mean" else (both[0].sum(), both[1].sum())

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        mean, moment = self.parts(outputs)
        return (self.mean or 0) * mean + (self.moment or 0) * moment
