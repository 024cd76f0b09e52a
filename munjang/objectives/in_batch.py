"""In-batch negatives: each anchor has to find its own positive among all of the batch and any hard negatives.

B examples of the whole batch, D width, K text columns behind the anchor, M = K * B candidates, R rows of a block.
Known as multiple negatives ranking, InfoNCE or NT-Xent.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.blocks import ROWS, mean_by_rows


class InBatch(Objective):
    """Cross-entropy over cosines divided by a temperature; with `is_symmetric`, positives have to find their anchor too.

    A candidate whose text equals the anchor's or the positive's is left out: it would be a false negative.
    """

    num_texts: ClassVar = (2, None)
    extras: ClassVar = ("texts",)

    def __init__(self, temperature: float = 0.05, is_symmetric: bool = False, block_rows: int = ROWS) -> None:
        super().__init__()
        self.temperature, self.is_symmetric, self.block_rows = temperature, is_symmetric, block_rows

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        unit = [F.normalize(vectors_BD.float(), dim=-1) for vectors_BD in outputs]
        anchors_BD, candidates_MD = unit[0], torch.cat(unit[1:])
        texts_BK = extras["texts"]
        loss = self._find(anchors_BD, candidates_MD, texts_BK[:, 0], texts_BK[:, 1:].t().reshape(-1), extras)
        if not self.is_symmetric:
            return loss
        back = self._find(unit[1], anchors_BD, texts_BK[:, 1], texts_BK[:, 0], extras)
        return (loss + back) / 2

    def _find(
        self, from_BD: Tensor, to_MD: Tensor, text_of_B: Tensor, text_of_M: Tensor, extras: Extras
    ) -> Tensor:
        """Candidate i is the one that row i has to find."""
        wanted_B = torch.arange(len(from_BD), device=from_BD.device)

        def loss_of(part: slice) -> Tensor:
            scores_RM = from_BD[part] @ to_MD.t() / self.temperature
            equal_RM = text_of_M[part, None] == text_of_M  # as the one to be found
            equal_RM = equal_RM | (text_of_B[part, None] == text_of_M)
            equal_RM[torch.arange(len(scores_RM)), wanted_B[part]] = False
            return F.cross_entropy(scores_RM.masked_fill(equal_RM, float("-inf")), wanted_B[part], reduction="none")

        return mean_by_rows(loss_of, len(from_BD), self.block_rows)
