"""Adaptive layers: vectors pooled after earlier layers are good ones too, so that layers can be cut off.

B examples, L layers, D dimension.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.objectives.base import Extras, Objective, Wrapper, positive
from munjang.objectives.distances import full


class AdaptiveLayers(Wrapper):
    """An objective's loss at the last layer, its mean over the earlier ones, and how far those are from the last.

    The distance is the Kullback-Leibler divergence of the components' softmax from that of the last layer, which it
    does not pull back (Li et al. 2024). All layers count in every step: others draw one at random, with this mean.
    """

    def __init__(
        self,
        objective: Objective,
        last_weight: float = 1.0,
        earlier_weight: float = 1.0,
        divergence_weight: float = 1.0,
        divergence_temperature: float = 0.3,
    ) -> None:
        super().__init__(objective)
        self.needs = "layers"
        self.last_weight, self.earlier_weight, self.divergence_weight = last_weight, earlier_weight, divergence_weight
        self.temperature = positive("divergence_temperature", divergence_temperature)
        # The divergence is a mean over examples. Beside a mean over other things it can't be put together from parts.
        counts_examples = type(self.innermost).size is Objective.size or not divergence_weight
        self.is_separable = objective.is_separable and counts_examples
        if not self.is_separable and not self.can_be_cached:
            raise InputError(
                f"{type(self.innermost).__name__} is a mean over tokens and the divergence one over texts; "
                "set divergence_weight=0, or train without adaptive layers."
            )

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        num_layers = outputs[0].shape[1]
        by_layer = [[column_BLD[:, layer] for column_BLD in outputs] for layer in range(num_layers)]
        loss: Tensor = self.last_weight * self.objective(by_layer[-1], extras)
        for vectors in by_layer[:-1]:
            earlier = self.earlier_weight * self.objective(vectors, extras)
            if self.divergence_weight:
                divergence = self.divergence_weight * self.temperature * self._divergence(vectors, by_layer[-1])
                earlier = earlier + divergence
            loss = loss + earlier / (num_layers - 1)
        return loss

    def _divergence(self, vectors: Sequence[Tensor], last: Sequence[Tensor]) -> Tensor:
        shares_ND = (full(torch.cat(list(vectors))) / self.temperature).log_softmax(-1)
        wanted_ND = (full(torch.cat(list(last))).detach() / self.temperature).log_softmax(-1)
        return (wanted_ND.exp() * (wanted_ND - shares_ND)).sum(-1).mean()

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor | int:
        return self.objective.size([column_BLD[:, -1] for column_BLD in outputs], extras)
