"""The paper's classification objective: softmax over a concatenation of the two vectors.    B examples, D dimension."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.objectives.base import Extras, Objective, choose

# What may stand in a concatenation; the seven of the paper's ablation are "u,v", "|u-v|", "u*v", "|u-v|,u*v",
# "u,v,u*v", "u,v,|u-v|" and "u,v,|u-v|,u*v".
PARTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "|u-v|": lambda u, v: (u - v).abs(),
    "u*v": lambda u, v: u * v,
}


class Classification(Objective):
    """Cross-entropy of a linear layer over (u, v, |u−v|). The layer is dropped after training."""

    extras = ("labels",)
    is_separable = True

    def __init__(self, width: int, num_labels: int, concatenation: str = "u,v,|u-v|") -> None:
        super().__init__()
        self.parts = tuple(concatenation.replace(" ", "").split(","))
        for part in self.parts:
            choose("part of the concatenation", part, PARTS)
        self.head = nn.Linear(len(self.parts) * width, num_labels)

    def logits(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        """Return the logits of each label, also for evaluation during training."""
        u_BD, v_BD = u_BD.to(self.head.weight.dtype), v_BD.to(self.head.weight.dtype)
        logits_BC: Tensor = self.head(torch.cat([PARTS[part](u_BD, v_BD) for part in self.parts], dim=-1))
        return logits_BC

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return F.cross_entropy(self.logits(*outputs), extras["labels"])
