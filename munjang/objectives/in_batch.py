"""In-batch negatives: each anchor has to find its own positive among all of the batch and any hard negatives.

B examples of the whole batch, D width, K text columns behind the anchor, M = K * B candidates, R rows of a block.
Known as multiple negatives ranking, InfoNCE or NT-Xent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.blocks import ROWS, mean_by_rows
from munjang.objectives.choice import positive
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

    def __init__(
        self,
        temperature: float = 0.05,
        is_symmetric: bool = False,
        guide_margin: float | None = None,
        block_rows: int = ROWS,
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

    def _find(self, rows: Side, candidates: Side) -> Tensor:
        """Candidate i is the one that row i has to find."""
        wanted_B = torch.arange(len(rows.vectors_MD), device=rows.vectors_MD.device)

        def loss_of(part: slice) -> Tensor:
            scores_RM = rows.vectors_MD[part] @ candidates.vectors_MD.t() / self.temperature
            is_left_out_RM = self._left_out(rows, candidates, part)
            is_left_out_RM.diagonal(part.start).fill_(False)
            hidden_RM = scores_RM.masked_fill(is_left_out_RM, float("-inf"))
            return F.cross_entropy(hidden_RM, wanted_B[part], reduction="none")

        return mean_by_rows(loss_of, len(wanted_B), self.block_rows)

    def _left_out(self, rows: Side, candidates: Side, part: slice) -> Tensor:
        """Which candidates may be right answers as well: [R, M]."""
        is_equal_RM = candidates.texts_M[part, None] == candidates.texts_M  # to the one that has to be found
        is_equal_RM |= rows.texts_M[part, None] == candidates.texts_M
        if self.guide_margin is not None and rows.guide_MD is not None and candidates.guide_MD is not None:
            guide_RD = rows.guide_MD[part]
            limit_R = (guide_RD * candidates.guide_MD[part]).sum(-1) - self.guide_margin
            is_equal_RM |= guide_RD @ candidates.guide_MD.t() > limit_R[:, None]
        return is_equal_RM
