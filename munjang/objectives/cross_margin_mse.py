"""Cross-encoder: the positive leads each negative by as much as a teacher says.    B queries, K candidates."""

from collections.abc import Sequence

from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose
from munjang.objectives.candidates import ACTIVATIONS, margin_loss, margins, one_logit


class CrossMarginMSE(Objective):
    """Mean squared error of the margins between the first candidate's logit and the others', over all negatives."""

    needs = "logits"
    num_texts = (3, None)
    extras = ("scores",)
    takes_margins = True
    is_separable = True

    def __init__(self, activation: str = "identity") -> None:
        super().__init__()
        self.activation = choose("activation", activation, ACTIVATIONS)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return margin_loss(self.activation(one_logit(outputs)), extras)

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return margins(extras, one_logit(outputs))[1].sum()
