"""Layer norm of a sum: a residual plus an update.    T tokens, D width."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.text.packing import has_triton


def is_half(x_TD: Tensor) -> bool:
    """Return whether our own GPU kernels can compute this: they take half precision."""
    return x_TD.is_cuda and x_TD.dtype in (torch.bfloat16, torch.float16) and len(x_TD) > 0 and has_triton()


def is_fused(x_TD: Tensor) -> bool:
    """Return whether our kernels for inference compute this."""
    return is_half(x_TD) and not torch.is_grad_enabled()


def unit(vectors_BD: Tensor) -> Tensor:
    """Scale vectors to unit length, in fp32."""
    vectors_BD = vectors_BD.float()
    if vectors_BD.is_cuda and has_triton() and not torch.is_grad_enabled():
        from munjang.nn import cuda

        return cuda.unit(vectors_BD.contiguous())
    return F.normalize(vectors_BD, dim=-1)


class Norm(nn.LayerNorm):
    """nn.LayerNorm, or the norm of a sum whose first part goes through dropout."""

    def forward(self, x_TD: Tensor, onto_TD: Tensor | None = None, dropout: float = 0.0) -> Tensor:
        if onto_TD is not None and is_half(x_TD):
            if torch.is_grad_enabled():
                from munjang.nn import cuda_training

                return cuda_training.add_norm(x_TD, onto_TD, self, dropout)
            from munjang.nn import cuda

            return cuda.add_norm(F.dropout(x_TD, dropout), onto_TD, self)
        if dropout:
            x_TD = F.dropout(x_TD, dropout)
        x_TD = x_TD if onto_TD is None else onto_TD + x_TD
        return F.layer_norm(x_TD, self.normalized_shape, self.weight, self.bias, self.eps)
