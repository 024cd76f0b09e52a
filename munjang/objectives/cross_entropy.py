"""Cross-encoder: which class the pair is of.    B pairs, C classes."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.distances import full


class CrossEntropy(Objective):
    """Cross-entropy of a logit per class."""

    needs = "logits"
    extras = ("labels",)
    has_logit_per_label = True
    is_separable = True

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return F.cross_entropy(full(outputs[0]), extras["labels"])
