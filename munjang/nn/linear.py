"""A linear layer that may carry its weights a second time, pre-packed for this CPU by oneDNN.

Packed weights are exact fp32, about a tenth faster than MKL's sgemm, and take GELU in the same pass (docs/log.md,
2026-11-15). They are for inference only: `train()`, loading weights and moving the layer drop them, so that a
weight which changes is never stale.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# oneDNN keeps a kernel with its working memory for every number of rows it has seen, megabytes each: rows go in blocks
# of one size, the last one rounded up to one of 24 sizes (inside this product only), so that memory stays flat
BLOCK = 512
STEPS = ((64, 8), (128, 16), (BLOCK, 32))  # up to so many rows, to a multiple of; coarser ones cost short texts a fifth
# activations that oneDNN computes in the same pass, exactly, and how it calls them
FUSED: dict[object, tuple[str, list[float], str]] = {F.gelu: ("gelu", [], "none")}


def can_pack() -> bool:
    """Whether this torch has oneDNN's packed linear operator."""
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class Linear(nn.Linear):
    """nn.Linear; after `pack()` inference on a CPU goes through oneDNN."""

    packed: Tensor | None = None

    def pack(self) -> None:
        """Lay the weights out for this CPU; for fp32 weights in main memory."""
        self.packed = None
        if self.weight.device.type == "cpu" and self.weight.dtype == torch.float32 and can_pack():
            with torch.no_grad():
                self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), BLOCK)

    def train(self, mode: bool = True) -> "Linear":
        """Switch between training and inference; training drops the packed weights."""
        if mode:
            self.packed = None
        return super().train(mode)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Linear":
        """Another device or dtype: the packed weights are no longer those of the layer."""
        self.packed = None
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *given: Any) -> None:
        self.packed = None
        super()._load_from_state_dict(*given)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are without the packed weights, which torch can't copy."""
        return {name: value for name, value in self.__dict__.items() if name != "packed"}

    def forward(
        self, x_TD: Tensor, activation: Callable[[Tensor], Tensor] | None = None, onto_TD: Tensor | None = None
    ) -> Tensor:
        """The linear map, with an activation behind it, or added to `onto_TD`."""
        if self.packed is None or not len(x_TD) or torch.is_grad_enabled():
            out = F.linear(x_TD, self.weight, self.bias)
            if onto_TD is not None:
                return onto_TD + out
            return out if activation is None else activation(out)
        if len(x_TD) <= BLOCK:
            return self._block(x_TD, activation, onto_TD)
        out = x_TD.new_empty(len(x_TD), self.out_features)
        for start in range(0, len(x_TD), BLOCK):
            part = slice(start, start + BLOCK)
            out[part] = self._block(x_TD[part], activation, None if onto_TD is None else onto_TD[part])
        return out

    def _block(
        self, x_TD: Tensor, activation: Callable[[Tensor], Tensor] | None, onto_TD: Tensor | None
    ) -> Tensor:
        rows = len(x_TD)
        spare = -rows % next(step for most, step in STEPS if rows <= most)
        if spare:
            x_TD = F.pad(x_TD, (0, 0, 0, spare))
            onto_TD = None if onto_TD is None else F.pad(onto_TD, (0, 0, 0, spare))
        out: Tensor
        if onto_TD is not None:
            out = torch.ops.mkldnn._linear_pointwise.binary(x_TD, onto_TD, self.packed, self.bias, "add")
            return out[:rows]
        fused = FUSED.get(activation, ("none", [], ""))
        out = torch.ops.mkldnn._linear_pointwise(x_TD, self.packed, self.bias, *fused)[:rows]
        return out if activation is None or activation in FUSED else activation(out)


def pack_all(network: nn.Module) -> None:
    """Pack every linear layer of a network that is to be used for inference."""
    for module in network.modules():
        if isinstance(module, Linear):
            module.pack()
