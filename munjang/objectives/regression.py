"""The paper's regression objective: the cosine of the two vectors has to be the score.    B examples, D dimension."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective
from munjang.objectives.distances import cosine


class Regression(Objective):
    """Mean squared error of the cosine against scores from 0 to 1."""

    extras = ("scores",)
    is_separable = True

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        cosines_B = cosine(*outputs)
        return F.mse_loss(cosines_B, extras["scores"].to(cosines_B.dtype))
