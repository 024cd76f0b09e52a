"""In-batch negatives: each anchor has to find its own positive among all of the batch and any hard negatives.

B examples of the whole batch, D dimension, K text columns after the anchor, M = K * B candidates, R rows of a block.
Known as multiple negatives ranking, InfoNCE or NT-Xent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.objectives.base import Extras, Objective, choose, positive
from munjang.objectives.blocks import BLOCK_ROWS, mean_by_rows
from munjang.objectives.distances import full, unit

# How vectors are prepared for the inner product
PREPARED: dict[str, Callable[[Tensor], Tensor]] = {"cosine": unit, "dot": full}
# More negatives for each anchor's softmax
CONTRASTS = {
    "anchors": "the anchor with the other anchors",
    "reverse": "its positive with all anchors",
    "positives": "its positive with the other positives",
    "candidates": "its positive with the candidates of other rows",
}
# Negatives that count more where they are close
HARDNESS = {"others": "candidates of other rows", "own": "hard negatives of the same row", "all": "both"}


@dataclass(frozen=True)
class Side:
    """Texts that search or are searched, column by column."""

    vectors_MD: Tensor  # prepared for the inner product
    texts_M: Tensor
    guide_MD: Tensor | None  # another model's


class InBatch(Objective):
    """Cross-entropy over cosines divided by a temperature.

    With `is_symmetric`, positives have to find their anchor too. `contrasts` adds negatives to the same softmax, such
    as "anchors,positives" (GISTEmbed) or "anchors,reverse,candidates" (GTE). `hardness` adds that many times its
    similarity to the score of a negative, so that close ones count more; `hardness_of` says to which.

    A candidate whose text equals the anchor's or the positive's is left out: it would be a false negative; with
    `keeps_duplicates` it stays. So is, with `guide_margin`, each that a second model finds closer to the anchor than
    the positive less that margin; a relative margin is a fraction of the positive's similarity.
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
        similarity: str = "cosine",
        contrasts: str = "",
        hardness: float = 0.0,
        hardness_of: str = "others",
        is_margin_relative: bool = False,
        keeps_duplicates: bool = False,
    ) -> None:
        super().__init__()
        self.temperature, self.is_symmetric = positive("temperature", temperature), is_symmetric
        self.guide_margin, self.block_rows = guide_margin, int(positive("block_rows", block_rows))
        self.prepared = choose("similarity", similarity, PREPARED)
        self.contrasts = tuple(filter(None, contrasts.replace(" ", "").split(",")))
        for name in self.contrasts:
            choose("contrast", name, CONTRASTS)
        if is_symmetric and self.contrasts:
            raise InputError("is_symmetric has a softmax for each direction, contrasts share one; set one of them.")
        choose("hardness_of", hardness_of, HARDNESS)
        self.hardness, self.hardness_of = hardness, hardness_of
        self.is_margin_relative, self.keeps_duplicates = is_margin_relative, keeps_duplicates
        if guide_margin is not None:
            self.extras = ("texts", "guide")

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        def side(columns: slice) -> Side:
            guide_BKD = None if self.guide_margin is None else extras["guide"][:, columns]
            return Side(
                torch.cat([self.prepared(vectors_BD) for vectors_BD in outputs[columns]]),
                extras["texts"][:, columns].t().reshape(-1),
                None if guide_BKD is None else unit(guide_BKD).transpose(0, 1).flatten(0, 1),
            )

        anchors, candidates = side(slice(0, 1)), side(slice(1, None))
        positives = side(slice(1, 2)) if self.is_symmetric or self.contrasts else candidates
        pools = {
            "anchors": (anchors, anchors),
            "reverse": (positives, anchors),
            "positives": (positives, positives),
            "candidates": (positives, candidates),
        }
        loss = self._find(anchors, candidates, {name: pools[name] for name in self.contrasts})
        return (loss + self._find(positives, anchors, {}, is_back=True)) / 2 if self.is_symmetric else loss

    def _find(
        self, anchors: Side, candidates: Side, pools: dict[str, tuple[Side, Side]], is_back: bool = False
    ) -> Tensor:
        """Return the loss of all anchors; anchor i has to find candidate i."""
        size = len(anchors.vectors_MD)
        own_B = torch.arange(size, device=anchors.vectors_MD.device)

        def costs_of(rows: slice) -> Tensor:
            similarities_RM = anchors.vectors_MD[rows] @ candidates.vectors_MD.t()
            scores_RM = similarities_RM / self.temperature
            if self.hardness and not is_back:
                scores_RM = scores_RM + self.hardness * self._hard(similarities_RM.detach(), own_B[rows], size)
            is_left_out_RM = self._false_negatives(anchors, candidates, anchors, candidates, rows)
            is_left_out_RM.diagonal(rows.start).fill_(False)
            scores = [scores_RM.masked_fill(is_left_out_RM, float("-inf"))]
            for name, (searching, searched) in pools.items():
                more_RM = searching.vectors_MD[rows] @ searched.vectors_MD.t() / self.temperature
                is_left_out_RM = self._false_negatives(anchors, candidates, searching, searched, rows)
                is_own_RM = torch.arange(len(searched.texts_M), device=own_B.device) % size == own_B[rows, None]
                is_left_out_RM = is_left_out_RM & ~is_own_RM if name == "reverse" else is_left_out_RM | is_own_RM
                scores.append(more_RM.masked_fill(is_left_out_RM, float("-inf")))
            return F.cross_entropy(torch.cat(scores, dim=1), own_B[rows], reduction="none")

        return mean_by_rows(costs_of, size, self.block_rows)

    def _hard(self, similarities_RM: Tensor, own_R: Tensor, size: int) -> Tensor:
        """Return the similarities of the negatives that count more, 0 elsewhere."""
        places_M = torch.arange(similarities_RM.shape[1], device=own_R.device)
        is_positive_RM, is_own_RM = places_M == own_R[:, None], places_M % size == own_R[:, None]
        kept = {"others": ~is_own_RM, "own": is_own_RM & ~is_positive_RM, "all": ~is_positive_RM}[self.hardness_of]
        return similarities_RM.masked_fill(~kept, 0)

    def _false_negatives(self, anchors: Side, candidates: Side, searching: Side, searched: Side, rows: slice) -> Tensor:
        """Mark what may be a right answer as well: [R, M]. Anchor and positive of each row tell."""
        if self.keeps_duplicates:
            shape = len(anchors.texts_M[rows]), len(searched.texts_M)
            is_false_RM = torch.zeros(shape, dtype=torch.bool, device=searched.texts_M.device)
        else:
            is_false_RM = candidates.texts_M[rows, None] == searched.texts_M  # equal to the anchor's own candidate
            is_false_RM |= anchors.texts_M[rows, None] == searched.texts_M
        if self.guide_margin is not None:
            assert anchors.guide_MD is not None
            assert candidates.guide_MD is not None
            assert searching.guide_MD is not None
            assert searched.guide_MD is not None
            own_R = (anchors.guide_MD[rows] * candidates.guide_MD[rows]).sum(-1)
            limit_R = own_R - self.guide_margin * (own_R.abs() if self.is_margin_relative else 1)
            is_false_RM |= searching.guide_MD[rows] @ searched.guide_MD.t() > limit_R[:, None]
        return is_false_RM
