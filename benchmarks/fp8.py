"""Linear layers in 8-bit floats (e4m3): rows in codes with a scale each, their product, an encoder made of them.

T tokens, D width of the input, N of the output. On a GPU the product is torch._scaled_mm; elsewhere the same codes are
multiplied in fp32, which shows what they cost in accuracy. Not part of the package: docs/log.md says why.
"""

from collections.abc import Callable, Iterable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn.encoder import ACTIVATIONS, Encoder
from munjang.nn.norm import has_triton
from munjang.nn.packed import blocks_of

LARGEST = 448.0  # that e4m3 holds
LEAST = 1e-12  # the smallest "largest value" of a row: a row of zeros has a scale too
KINDS = ("qkv", "out", "up", "down")


def quantize(x_TD: Tensor, has_gelu: bool = False) -> tuple[Tensor, Tensor]:
    """Codes [T, D] and the scale of each row [T, 1], on demand of what GELU gives.

    A row with NaN or infinity has NaN in every component, as its product has anyway; the other rows don't see it.
    """
    if x_TD.is_cuda and has_triton() and len(x_TD):
        from benchmarks import fp8_kernel

        return fp8_kernel.quantize(x_TD, LEAST, LARGEST, has_gelu)
    return quantize_plainly(x_TD, has_gelu)


def quantize_plainly(x_TD: Tensor, has_gelu: bool = False) -> tuple[Tensor, Tensor]:
    """The same by torch's own operators."""
    value_TD = x_TD.float()
    if has_gelu:
        value_TD = F.gelu(value_TD, approximate="tanh")
    scale_T1 = value_TD.abs().amax(1, keepdim=True).clamp(min=LEAST) / LARGEST
    scale_T1 = torch.where(scale_T1.isfinite(), scale_T1, torch.nan)
    return (value_TD / scale_T1).to(torch.float8_e4m3fn), scale_T1


def dequantize(codes_TD: Tensor, scale_T1: Tensor) -> Tensor:
    """The values that the codes stand for."""
    return codes_TD.float() * scale_T1


def product(given: tuple[Tensor, Tensor], weight: tuple[Tensor, Tensor], bias_N: Tensor | None) -> Tensor:
    """[T, N]: bf16 on a GPU, else fp32. Codes and scales of both: a scale per row, or one number for all."""
    (codes_TD, scale), (codes_ND, weight_scale) = given, weight
    if not codes_TD.is_cuda:
        return F.linear(dequantize(codes_TD, scale), dequantize(codes_ND, weight_scale), bias_N)
    scales = (scale, weight_scale.t() if weight_scale.dim() else weight_scale)
    return torch._scaled_mm(codes_TD, codes_ND.t(), *scales, bias=bias_N, out_dtype=torch.bfloat16, use_fast_accum=True)


class Fp8(nn.Module):
    """In place of a layer's linear map. `takes_gelu`: the map before left GELU to this one's rounding."""

    packed = None  # what a layer asks its maps for

    def __init__(
        self, linear: nn.Linear, equal_D: Tensor | None = None, takes_gelu: bool = False, leaves_gelu: bool = False
    ) -> None:
        super().__init__()
        weight_ND = linear.weight.detach()
        self.bias_N = None if linear.bias is None else linear.bias.detach()
        self.shrink_D = None if equal_D is None else (1 / equal_D).to(weight_ND)
        self.weight = quantize(weight_ND if equal_D is None else weight_ND * equal_D.to(weight_ND))
        self.takes_gelu, self.leaves_gelu = takes_gelu, leaves_gelu

    def forward(self, x_TD: Tensor, activation: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        x_TD = x_TD if self.shrink_D is None else x_TD * self.shrink_D
        out_TN = product(quantize(x_TD, self.takes_gelu), self.weight, self.bias_N)
        return out_TN if activation is None or self.leaves_gelu else activation(out_TN)


@torch.no_grad()
def replace(
    encoder: Encoder, kinds: Iterable[str] = KINDS, equal: Mapping[nn.Module, Tensor] | None = None, fuse: bool = False
) -> None:
    """Put `Fp8` in place of these maps of every layer; `equal`: by how much columns of an input are to be shrunk.

    `fuse`: GELU goes into the rounding of what comes behind it. An embedding's projection stays as it is, as in int8.
    """
    shape = encoder.shape
    fuse = fuse and not shape.has_gate and ACTIVATIONS[shape.activation] is F.gelu
    for block in blocks_of(encoder):
        for kind in kinds:
            linear = getattr(block, kind)
            parts = (fuse and kind == "down", fuse and kind == "up")
            setattr(block, kind, Fp8(linear, None if equal is None else equal.get(linear), *parts))
