"""Cross-encoder: the query's own document has to lead its hard negatives and documents of other queries.

B queries, K candidates: the positive, hard negatives, sampled documents.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective, choose, positive
from munjang.objectives.candidates import ACTIVATIONS, one_logit


class CrossInBatch(Objective):
    """Cross-entropy over candidates, the first of which is right; `num_sampled` of them come from other examples."""

    needs = "logits"
    num_texts = (2, None)
    sampler = "no_duplicates"  # a text that occurs twice in a batch would be a false negative
    is_separable = True  # other examples' documents are drawn before; then each query is by itself

    def __init__(self, num_sampled: int = 4, scale: float = 10.0, activation: str = "sigmoid") -> None:
        super().__init__()
        self.num_sampled, self.scale = num_sampled, positive("scale", scale)
        self.activation = choose("activation", activation, ACTIVATIONS)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        values_BK = self.activation(one_logit(outputs)) * self.scale
        first_B = torch.zeros(len(values_BK), dtype=torch.long, device=values_BK.device)
        return F.cross_entropy(values_BK, first_B)
