"""A linear layer with an optional second copy of its weights, prepacked for inference on this CPU.

T tokens, D width of the input, N of the output. Packings are exact fp32 or bf16 through oneDNN (nn/prepacked.py), and
8 bits (nn/int8/). `train()`, loading weights and moving the layer drop them, so that a changed weight is never stale.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Activation = Callable[[Tensor], Tensor]
# oneDNN keeps a kernel with its working memory for every number of rows it has seen, megabytes each: rows go in blocks
# of one size, the last one rounded up to one of 36 sizes (inside this product only), so that memory stays flat
MAX_ROWS = 512
ROW_MULTIPLES = ((32, 2), (64, 8), (128, 16), (MAX_ROWS, 32))  # (up to so many rows, padded to a multiple of)


class Packing(Protocol):
    """Weights prepacked for this CPU; a call takes at most MAX_ROWS rows."""

    def __call__(self, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None) -> Tensor:
        """Compute the product and the activation, into `out_TN` if given."""


class Linear(nn.Linear):
    """nn.Linear; once `prepacked` is set, inference goes through it."""

    prepacked: Packing | None = None

    def train(self, mode: bool = True) -> "Linear":
        """Switch between training and inference; training drops the prepacked weights."""
        if mode:
            self.prepacked = None
        return super().train(mode)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Linear":
        """Change device or dtype, and drop the prepacked weights, which do not follow."""
        self.prepacked = None
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *args: Any) -> None:
        self.prepacked = None
        super()._load_from_state_dict(*args)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the prepacked weights out of copies and pickles: torch can't copy them."""
        return {name: value for name, value in self.__dict__.items() if name != "prepacked"}

    def forward(self, x_TD: Tensor, activation: Activation | None = None) -> Tensor:
        """Compute the linear layer, followed by an activation if given."""
        if torch.is_grad_enabled() or not len(x_TD):
            return self._plain(x_TD, activation)
        if self.prepacked is None:
            is_half = x_TD.is_cuda and x_TD.dtype == self.weight.dtype != torch.float32
            if is_half and activation is F.gelu and self.bias is not None:
                # in the product's own pass, by tanh: nearer to the exact one than bf16 can tell apart
                return torch._addmm_activation(self.bias, x_TD, self.weight.t(), use_gelu=True)
            return self._plain(x_TD, activation)
        if len(x_TD) <= MAX_ROWS:
            return _rounded(self.prepacked, x_TD, activation)
        out = x_TD.new_empty(len(x_TD), self.out_features)
        for start in range(0, len(x_TD), MAX_ROWS):
            part = slice(start, start + MAX_ROWS)
            _rounded(self.prepacked, x_TD[part], activation, out[part])
        return out

    def product(self, x_TD: Tensor, activation: Activation | None = None) -> Tensor:
        """Compute `forward` without its checks: prepacked weights, no gradient, padded rows."""
        assert self.prepacked is not None
        return self.prepacked(x_TD, activation, None)

    def _plain(self, x_TD: Tensor, activation: Activation | None) -> Tensor:
        out = F.linear(x_TD, self.weight, self.bias)
        return out if activation is None else activation(out)


def _rounded(packed: Packing, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None = None) -> Tensor:
    """Compute at most MAX_ROWS rows, padded to a number of rows that oneDNN has a kernel for."""
    padded_TD = round_up(x_TD)
    if padded_TD is x_TD:
        return packed(x_TD, activation, out_TN)
    product_TN = packed(padded_TD, activation, None)[: len(x_TD)]
    return product_TN if out_TN is None else out_TN.copy_(product_TN)


def round_up(x_TD: Tensor) -> Tensor:
    """Pad at most MAX_ROWS rows with zeros to a number of rows that oneDNN has a kernel for."""
    rows = len(x_TD)
    spare = -rows % next(step for most, step in ROW_MULTIPLES if rows <= most)
    return F.pad(x_TD, (0, 0, 0, spare)) if spare else x_TD
