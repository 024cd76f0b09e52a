"""8-bit layers with static activation scales, which compute the steps between two products inside the products.

T tokens, D width of the input, N of the output.

nn/int8/dynamic.py gives every row a scale of its own, which takes four passes over the values around each product. Here
bias, GELU, the sum with what a layer adds to, and the rounding to codes are part of the products; nn/int8/static.py
finds scales for which that is good enough (docs/log.md, 2026-11-16).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.nn import blocks
from munjang.nn.attention import Bias, attend, attend_one
from munjang.nn.int8.codes import to_codes
from munjang.nn.linear import MAX_ROWS, Activation, round_up
from munjang.text.packing import Packed

GELU_DEPTH = 0.17  # GELU never falls below -0.17
# a layer is an encoder's Block, whose file imports this one: Any
Post = tuple[str, list[float], str]
GELU: Post = ("gelu", [], "none")
NO_ACTIVATION: Post = ("none", [], "")


@dataclass(frozen=True)
class Range:
    """A range of values as codes from 0 to 255: the step between two codes, and the code of zero."""

    step: float = 1.0
    zero: int = 0

    @classmethod
    def around_zero(cls, largest: float) -> "Range":
        """Return the range from -largest to largest."""
        return cls(max(largest, 1e-10) / 127, 128)

    @classmethod
    def after_gelu(cls, largest: float) -> "Range":
        """Return the range from GELU's lowest value to `largest`."""
        step = (max(largest, 1e-2) + GELU_DEPTH) / 255
        return cls(step, round(GELU_DEPTH / step))

    @property
    def pair(self) -> tuple[float, int]:
        """The step and the code of zero, as arguments."""
        return self.step, self.zero

    @property
    def end(self) -> float:
        """The largest value that has a code."""
        return self.step * (255 - self.zero)


class StaticPacking:
    """The 8-bit weights of a layer with a static activation scale; results are in a dtype, or in codes."""

    def __init__(
        self,
        whole_ND: Tensor,
        scale_N: Tensor,
        bias_N: Tensor | None,
        input_range: Range,
        output: Range | torch.dtype,
        evened: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.scale_N, self.bias_N, self.input_range = scale_N, bias_N, input_range
        self.evened = evened  # an offset and a factor for each input column, before codes
        self.output_range, self.dtype = (output, torch.uint8) if isinstance(output, Range) else (Range(), output)
        self.weight = torch.ops.onednn.qlinear_prepack(whole_ND, [MAX_ROWS, whole_ND.shape[1]])

    def __call__(self, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None) -> Tensor:
        """Compute the product, followed by GELU if asked."""
        assert activation is None or activation is F.gelu
        product_TN: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(self.codes(x_TD), *self.input_range.pair, self.weight, self.scale_N, None, self.bias_N),
            *(*self.output_range.pair, self.dtype, *(GELU if activation else NO_ACTIVATION)),
        )
        return product_TN if out_TN is None else out_TN.copy_(product_TN)

    def onto(self, x_TD: Tensor, onto_TN: Tensor) -> Tensor:
        """Compute the product plus `onto_TN`."""
        product_TN: Tensor = torch.ops.onednn.qlinear_pointwise.binary(
            *(self.codes(x_TD), *self.input_range.pair, self.weight, self.scale_N, None, onto_TN),
            *(self.bias_N, *self.output_range.pair, self.dtype, 1.0, 0, "add", 1.0, *NO_ACTIVATION),
        )
        return product_TN

    def codes(self, x_TD: Tensor) -> Tensor:
        """Return values as codes, unless they already are."""
        if x_TD.dtype == torch.uint8:
            return x_TD
        x_TD = x_TD.float() if self.evened is None else torch.addcmul(self.evened[0], x_TD, self.evened[1])
        return to_codes(x_TD, *self.input_range.pair)


def has_static_scales(block: Any) -> bool:
    """Return whether all products of a layer have static scales."""
    return all(isinstance(linear.prepacked, StaticPacking) for linear in block.products)


def layer(block: Any, x_TD: Tensor, batch: Packed, bias: Bias | None) -> Tensor:
    """Compute one post-norm layer, as many rows at a time as oneDNN keeps a kernel for."""
    qkv, out, up, down = (cast(StaticPacking, linear.prepacked) for linear in block.products)
    rows, heads = len(x_TD), block.shape.num_heads
    parts_TN = x_TD.new_empty(rows, 3 * x_TD.shape[1], dtype=qkv.dtype)
    for part in parts(rows):
        parts_TN[part] = qkv(round_up(x_TD[part]), None, None)[: part.stop - part.start]
    parts_T3NK = parts_TN.view(rows, 3, heads, -1)
    is_half = qkv.dtype == torch.bfloat16 and batch.seen is None
    seen_TNK = blocks.attend(parts_T3NK, batch, bias) if is_half else attend(parts_T3NK, batch, bias)
    seen_TD = seen_TNK.reshape(x_TD.shape)
    sum_TD = torch.empty_like(x_TD)
    for part in parts(rows):
        sum_TD[part] = out.onto(round_up(seen_TD[part]), round_up(x_TD[part]))[: part.stop - part.start]
    x_TD = block.attention_norm(sum_TD)
    for part in parts(rows):
        here_TD = round_up(x_TD[part])
        sum_TD[part] = down.onto(up(here_TD, F.gelu, None), here_TD)[: part.stop - part.start]
    return cast(Tensor, block.inner_norm(sum_TD))


def single_text(block: Any, x_TD: Tensor, num_tokens: int, bias: Bias | None) -> Tensor:
    """Compute `layer` for one padded text; equal to the bit, as a small difference would become one of a code."""
    qkv, out, up, down = (cast(StaticPacking, linear.prepacked) for linear in block.products)
    parts_T3NK = qkv(x_TD, None, None).view(len(x_TD), 3, block.shape.num_heads, -1)
    attend_alone = blocks.attend_one if qkv.dtype == torch.bfloat16 else attend_one
    seen_TNK = attend_alone(parts_T3NK, num_tokens, bias)
    x_TD = block.attention_norm(out.onto(seen_TNK.reshape(x_TD.shape), x_TD))
    return cast(Tensor, block.inner_norm(down.onto(up(x_TD, F.gelu, None), x_TD)))


def parts(rows: int) -> Iterator[slice]:
    """Yield the rows in blocks of one size, and the rest."""
    return (slice(start, min(start + MAX_ROWS, rows)) for start in range(0, rows, MAX_ROWS))
