"""Layer norm of a sum: a residual and what is added to it.    T tokens, D width."""

from functools import cache
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@cache
def has_triton() -> bool:
    """Whether our own GPU kernels can be compiled here: torch brings Triton with it for CUDA on Linux."""
    return find_spec("triton") is not None


def is_fused(x_TD: Tensor) -> bool:
    """Whether our own GPU kernels compute this: half precision, for inference."""
    is_half = x_TD.is_cuda and x_TD.dtype in (torch.bfloat16, torch.float16)
    return is_half and len(x_TD) > 0 and not torch.is_grad_enabled() and has_triton()


class Norm(nn.LayerNorm):
    """nn.LayerNorm, of a sum if a second part is given."""

    def forward(self, x_TD: Tensor, onto_TD: Tensor | None = None) -> Tensor:
        if onto_TD is not None and is_fused(x_TD):
            from munjang.nn import cuda

            return cuda.add_norm(x_TD, onto_TD, self)
        x_TD = x_TD if onto_TD is None else onto_TD + x_TD
        return F.layer_norm(x_TD, self.normalized_shape, self.weight, self.bias, self.eps)
