"""Cross-encoder: how similar the pair is.    B pairs."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.candidates import ACTIVATIONS, one_logit


class CrossMSE(Objective):
    """Mean squared error of one logit against scores, on whatever scale; with "sigmoid", from 0 to 1."""

    needs = "logits"
    extras = ("scores",)
    is_separable = True

    def __init__(self, activation: str = "identity") -> None:
        super().__init__()
        self.activation = choose("activation", activation, ACTIVATIONS)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        values_B = self.activation(one_logit(outputs)[:, 0])
        return F.mse_loss(values_B, extras["scores"].to(values_B.dtype))
