"""Matryoshka: the first components of a vector are a good vector by themselves.

B examples, D dimension, S the first components of it.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from munjang.errors import InputError
from munjang.objectives.base import Extras, Objective, Wrapper
from munjang.objectives.distances import full


class Matryoshka(Wrapper):
    """The weighted sum of an objective's losses over vectors cut to each of `dims` (Kusupati et al. 2022).

    Cut vectors get length one, as they will be compared by cosine; `is_normalized=False` leaves them as they are. An
    objective with parameters of its own, such as the softmax head, sees zeros for what was cut off, so that each size
    uses the first weights of the one head: the paper's efficient variant.
    """

    around = ("embeddings", "layers")

    def __init__(
        self,
        objective: Objective,
        width: int,
        dims: Sequence[int],
        weights: Sequence[float] | None = None,
        is_normalized: bool = True,
    ) -> None:
        super().__init__(objective)
        if not dims or len(set(dims)) < len(dims) or not all(0 < dim <= width for dim in dims):
            raise InputError(f"dims are {list(dims)}; give different ones from 1 to the model's width, {width}.")
        if weights is not None and len(weights) != len(dims):
            raise InputError(f"{len(weights)} weights for {len(dims)} dims; each needs one.")
        self.dims, self.weights = tuple(dims), tuple(weights or [1.0] * len(dims))
        self.is_normalized, self.has_head = is_normalized, any(True for _ in objective.parameters())

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        losses = [
            weight * self.objective([self._cut(vectors, dim) for vectors in outputs], self._extras(extras, dim))
            for dim, weight in zip(self.dims, self.weights, strict=True)
        ]
        total: Tensor = sum(losses[1:], losses[0])
        return total

    def _cut(self, vectors_BD: Tensor, dim: int) -> Tensor:
        cut_BS = vectors_BD[..., :dim]
        cut_BS = F.normalize(full(cut_BS), dim=-1) if self.is_normalized else cut_BS
        return F.pad(cut_BS, (0, vectors_BD.shape[-1] - dim)) if self.has_head else cut_BS

    def _extras(self, extras: Extras, dim: int) -> Extras:
        """Components that meet the teacher's one by one meet its first ones."""
        if "teacher" not in extras or not self.is_by_component:
            return extras
        return {**extras, "teacher": extras["teacher"][..., :dim]}
