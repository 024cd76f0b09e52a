"""In-batch negatives: each anchor has to find its own positive among all of the batch and any hard negatives.

B examples of the whole batch, D dimension, K text columns after the anchor, M = K * B candidates, R rows of a block.
Known as multiple negatives ranking, InfoNCE or NT-Xent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective, positive
from munjang.objectives.blocks import BLOCK_ROWS, mean_by_rows
from munjang.objectives.distances import unit


@dataclass(frozen=True)
class Side:
    """Texts that search or are searched, column by column."""

    vectors_MD: Tensor  # unit vectors
    texts_M: Tensor
    guide_MD: Tensor | None  # another model's


class InBatch(Objective):
    """Cross-entropy over cosines divided by a temperature.

    With `is_symmetric`, positives have to find their anchor too.

    A candidate whose text equals the anchor's or the positive's is left out: it would be a false negative. So is, with
    `guide_margin`, each that a second model finds closer to the anchor than the positive less that margin.
    """

    num_texts: tuple[int, int | None] = (2, None)
    extras: tuple[str, ...] = ("texts",)
    sampler = "no_duplicates"  # a text that occurs twice in a batch would be a false negative

    def __init__(
        self,
        temperature: float = 0.05,
        is_symmetric: bool = False,
        guide_margin: float | None = None,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        super().__init__()
        self.temperature, self.is_symmetric = positive("temperature", temperature), is_symmetric
        self.guide_margin, self.block_rows = guide_margin, int(positive("block_rows", block_rows))
        if guide_margin is not None:
            self.extras = ("texts", "guide")

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        def side(columns: slice) -> Side:
            guide_BKD = None if self.guide_margin is None else extras["guide"][:, columns]
            return Side(
                torch.cat([unit(vectors_BD) for vectors_BD in outputs[columns]]),
                extras["texts"][:, columns].t().reshape(-1),
                None if guide_BKD is None else unit(guide_BKD).transpose(0, 1).flatten(0, 1),
            )

        anchors = side(slice(0, 1))
        loss = self._find(anchors, side(slice(1, None)))
        return (loss + self._find(side(slice(1, 2)), anchors)) / 2 if self.is_symmetric else loss

    def _find(self, anchors: Side, candidates: Side) -> Tensor:
        """Return the loss of all anchors; anchor i has to find candidate i."""
        own_B = torch.arange(len(anchors.vectors_MD), device=anchors.vectors_MD.device)

        def costs_of(rows: slice) -> Tensor:
            scores_RM = anchors.vectors_MD[rows] @ candidates.vectors_MD.t() / self.temperature
            is_left_out_RM = self._false_negatives(anchors, candidates, rows)
            is_left_out_RM.diagonal(rows.start).fill_(False)
            hidden_RM = scores_RM.masked_fill(is_left_out_RM, float("-inf"))
            return F.cross_entropy(hidden_RM, own_B[rows], reduction="none")

        return mean_by_rows(costs_of, len(own_B), self.block_rows)

    def _false_negatives(self, anchors: Side, candidates: Side, rows: slice) -> Tensor:
        """Mark the candidates that may be right answers as well: [R, M]."""
        is_false_RM = candidates.texts_M[rows, None] == candidates.texts_M  # equal to the anchor's own candidate
        is_false_RM |= anchors.texts_M[rows, None] == candidates.texts_M
        if self.guide_margin is not None and anchors.guide_MD is not None and candidates.guide_MD is not None:
            guide_RD = anchors.guide_MD[rows]
            limit_R = (guide_RD * candidates.guide_MD[rows]).sum(-1) - self.guide_margin
            is_false_RM |= guide_RD @ candidates.guide_MD.t() > limit_R[:, None]
        return is_false_RM
