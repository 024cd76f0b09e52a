"""FLOPS: sparse vectors stay sparse.    B examples, V dimensions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.objectives.base import Extras, Objective, Wrapper


class Flops(Wrapper):
    """An objective's loss plus what comparing the vectors costs (Paria et al. 2020): squares of the mean activations.

    `query_weight` weighs the first column, `document_weight` the others. Higher weights leave fewer dimensions.
    """

    def __init__(self, objective: Objective, query_weight: float = 1e-4, document_weight: float = 1e-4) -> None:
        super().__init__(objective)
        for name, weight in (("query_weight", query_weight), ("document_weight", document_weight)):
            if not 0 <= weight < float("inf"):
                raise InputError(f"{name} is {weight}; give a number from 0.")
        self.query_weight, self.document_weight = query_weight, document_weight
        self.is_separable = False  # means over the whole batch

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        loss: Tensor = self.objective(outputs, extras) + self.query_weight * num_flops(outputs[0])
        return loss if len(outputs) == 1 else loss + self.document_weight * num_flops(torch.cat(list(outputs[1:])))


def num_flops(rows_BV: Tensor) -> Tensor:
    """Return the expected number of products of two rows, smoothed: the sum of squared mean activations."""
    return rows_BV.abs().mean(0).square().sum()
