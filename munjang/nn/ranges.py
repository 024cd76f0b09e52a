"""The ranges of an encoder's 8-bit layers: found once, on random words of its vocabulary.

D width of the input, C columns of the feed-forward part, N width of the output.

- Behind a norm one range does for all rows once the columns are even: the middle of each is taken off (the bias has
  the product of it), large ones are shrunk and the weights' grown by as much. More is left to the weights than half of
  it (SmoothQuant's 0.5), as their rows still have scales of their own.
- What GELU gives is so uneven that the largest column would leave few codes to the others. So a few columns go up a
  ladder: a second one of the same weights begins where the first one ends, and so on. Where they meet GELU bends, by
  at most 0.17.
"""

import os
from typing import TypeAlias, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn.blocks import has_bf16
from munjang.nn.encoder import ACTIVATIONS, Encoder
from munjang.nn.fixed import Fixed, Range, hush
from munjang.nn.linear import Linear
from munjang.nn.packed import blocks_of, can_pack, in_steps, sample
from munjang.text.packing import Packed

SWITCH = "MUNJANG_INT8"  # "rows": a scale per row instead of these ranges, more exact and a fifth slower
SAMPLE_LENGTHS = [32] * 64 + [1, 2, 3, 4] * 4  # short texts are mostly what stands before and behind a text
LEFT_TO_WEIGHTS = 0.7
RUNGS = 16  # columns added for the ladders: as many as an instruction takes
NEAR = 0.9975  # cosine of the sample to the exact one; below it a model keeps a scale per row
BEYOND = 1.3  # real text has larger values behind GELU than random words


Extremes: TypeAlias = dict[nn.Module, tuple[Tensor, Tensor]]


def can_fix(encoder: nn.Module) -> TypeGuard[Encoder]:
    """Whether layers are plain and this CPU has VNNI (else weights have 7 bits, none to spare); rows may be wanted."""
    if os.environ.get(SWITCH) == "rows" or not isinstance(encoder, Encoder) or not can_pack(torch.int8):
        return False
    shape = encoder.shape
    is_plain = not (shape.is_pre_norm or shape.has_gate or shape.rotary_bases or shape.windows or shape.shared)
    return is_plain and ACTIVATIONS[shape.activation] is F.gelu and torch.cpu._is_vnni_supported()


@torch.no_grad()
def pack_fixed(encoder: Encoder) -> bool:
    """Pack all layers, with ranges from a sample that goes through them as they are.

    False: the sample comes out too far from where it did, so that layers are left as they were (docs/log.md).
    """
    hush()
    before = {linear: linear.packed for linear in _layers(encoder)}
    batch = sample(encoder, SAMPLE_LENGTHS, has_ends=True)
    extremes, exact_TD = extremes_of(encoder, batch)
    _pack(encoder, extremes)
    if closeness(exact_TD, encoder(batch), batch) >= NEAR:
        return True
    for linear, packed in before.items():
        linear.packed = packed
    return False


def closeness(exact_TD: Tensor, found_TD: Tensor, batch: Packed) -> float:
    """The mean cosine of the texts' mean vectors."""
    cosines = []
    for start, texts, length in batch.runs:
        one, other = (
            side[start : start + texts * length].view(texts, length, -1).mean(1) for side in (exact_TD, found_TD)
        )
        cosines.append(F.cosine_similarity(one, other))
    return float(torch.cat(cosines).mean())


def _pack(encoder: Encoder, extremes: Extremes) -> None:
    dtype = torch.bfloat16 if has_bf16() else torch.float32
    for block in blocks_of(encoder):
        columns, rungs, reach = ladder(extremes[block.down][1] * BEYOND, RUNGS)
        between = Range.behind_gelu(reach)
        block.qkv.packed = behind_norm(block.qkv, extremes[block.qkv], dtype)
        given = Range.around_zero(float(torch.stack(extremes[block.out]).abs().max()))
        block.out.packed = Fixed(*in_steps(block.out.weight), _bias(block.out), given, torch.float32)
        block.up.packed = behind_norm(block.up, extremes[block.up], between, (columns, -rungs * between.end))
        block.down.packed = Fixed(*in_steps(block.down.weight[:, columns]), _bias(block.down), between, torch.float32)


def extremes_of(encoder: Encoder, batch: Packed) -> tuple[Extremes, Tensor]:
    """The lowest and the highest value of each column of each product's input, and what comes out at the end."""
    found: Extremes = {}

    def see(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        found[module] = given[0].amin(0), given[0].amax(0)

    hooks = [linear.register_forward_pre_hook(see) for linear in _layers(encoder)]
    try:
        out_TD = encoder(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return found, out_TD


def _layers(encoder: Encoder) -> list[Linear]:
    return [each for block in blocks_of(encoder) for each in (block.qkv, block.out, block.up, block.down)]


def behind_norm(
    linear: Linear,
    extremes: tuple[Tensor, Tensor],
    gives: Range | torch.dtype,
    chosen: tuple[Tensor, Tensor] | None = None,
) -> Fixed:
    """A product whose input is made even; `chosen` are columns of its results, and what is added to each."""
    low_D, high_D = extremes
    middle_D, reach_D = (low_D + high_D) / 2, (high_D - low_D) / 2
    equal_D = equaliser(linear.weight, reach_D)
    weight_ND, bias_N = linear.weight * equal_D, _bias(linear) + linear.weight @ middle_D
    if chosen is not None:
        weight_ND, bias_N = weight_ND[chosen[0]], bias_N[chosen[0]] + chosen[1]
    given = Range.around_zero(float((reach_D / equal_D).max()))
    return Fixed(*in_steps(weight_ND), bias_N, given, gives, (-middle_D / equal_D, 1 / equal_D))


def ladder(top_C: Tensor, num_rungs: int) -> tuple[Tensor, Tensor, float]:
    """Columns with those added behind, the rung of each, and how far one has to reach for all to get to their top.

    >>> columns, rungs, reach = ladder(torch.tensor([2.0, 9.0, 3.0]), 2)
    >>> columns.tolist(), rungs.tolist(), reach
    ([0, 1, 2, 1, 1], [0.0, 0.0, 0.0, 1.0, 2.0], 3.0)
    """
    count_C = torch.ones(len(top_C))
    added: list[tuple[int, int]] = []
    for _ in range(num_rungs):
        column = int((top_C / count_C).argmax())
        added.append((column, int(count_C[column])))
        count_C[column] += 1
    columns = torch.cat([torch.arange(len(top_C)), torch.tensor([column for column, _ in added], dtype=torch.int64)])
    rungs = torch.cat([torch.zeros(len(top_C)), torch.tensor([float(rung) for _, rung in added])])
    return columns, rungs, float((top_C / count_C).max())


def equaliser(weight_ND: Tensor, largest_D: Tensor) -> Tensor:
    """By how much each column of the input is to be shrunk: powers of two, so that undoing it is exact."""
    weights_D = weight_ND.abs().amax(0).clamp(min=1e-5)
    equal_D = largest_D.clamp(min=1e-5) ** LEFT_TO_WEIGHTS / weights_D ** (1 - LEFT_TO_WEIGHTS)
    return torch.exp2(torch.log2(equal_D / equal_D.mean()).round())


def _bias(linear: Linear) -> Tensor:
    return torch.zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
