"""Cross-encoder: is the pair right, by one logit.    B pairs."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.candidates import one_logit

# What the pairs are known by
TARGETS = {"labels": "0 or 1", "scores": "from 0 to 1"}


class CrossBCE(Objective):
    """Binary cross-entropy of one logit against labels or scores; `positive_weight` is for rare positives."""

    needs = "logits"
    extras: tuple[str, ...] = ("scores",)
    is_separable = True

    def __init__(self, target: str = "scores", positive_weight: float = 1.0) -> None:
        super().__init__()
        choose("target", target, TARGETS)
        self.extras = (target,)
        self.positive_weight = positive_weight

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        logits_B = one_logit(outputs)[:, 0]
        weight = torch.tensor(self.positive_weight, dtype=logits_B.dtype, device=logits_B.device)
        targets_B = extras[self.extras[0]].to(logits_B.dtype)
        return F.binary_cross_entropy_with_logits(logits_B, targets_B, pos_weight=weight)
