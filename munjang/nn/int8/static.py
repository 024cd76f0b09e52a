"""Static activation scales of an encoder's 8-bit layers, measured once on random tokens.

D width of the input, C columns of the feed-forward part, N width of the output.

- Behind a norm one scale does for all rows once the columns are even: the middle of each is taken off (the bias has
  the product of it), large ones are shrunk and the weights' grown by as much. More is left to the weights than half of
  it (SmoothQuant's 0.5), as their rows still have scales of their own.
- What GELU gives is so uneven that the largest column would leave few codes to the others. So a few columns go up a
  ladder: a second one of the same weights begins where the first one ends, and so on. Where they meet GELU bends, by
  at most 0.17.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.nn.cpu import has_bf16, has_vnni
from munjang.nn.encoder import ACTIVATIONS, Block, Encoder
from munjang.nn.int8.layer import Range, StaticPacking
from munjang.nn.int8.observe import Columns, Observation
from munjang.nn.int8.weights import equaliser, quantize_weights, rounding_loss
from munjang.nn.linear import Linear

MIGRATION_STRENGTH = 0.7
NUM_RUNGS = 16  # columns added for the ladders: as many as an instruction takes
REAL_TEXT_FACTOR = 1.3  # real text has larger values behind GELU than random tokens


def can_be_static(encoder: Encoder) -> bool:
    """Return whether layers are plain and this CPU has VNNI; without it weights have no accuracy to spare."""
    shape = encoder.shape
    is_plain = not (shape.is_pre_norm or shape.has_gate or shape.rotary_bases or shape.windows or shape.shared)
    return is_plain and ACTIVATIONS[shape.activation] is F.gelu and has_vnni()


def prepack_static(block: Block, observation: Observation) -> None:
    """Prepack the four linear layers of a block, with scales from the observed sample."""
    dtype = torch.bfloat16 if has_bf16() else torch.float32
    qkv, out, up, down = (observation.inputs[linear] for linear in block.products)
    columns, rungs, reach = ladder(down.high_D * REAL_TEXT_FACTOR, NUM_RUNGS)
    between = Range.after_gelu(reach)
    block.qkv.prepacked = prepack_after_norm(block.qkv, qkv, dtype)
    out_range = Range.around_zero(float(torch.stack([out.low_D, out.high_D]).abs().max()))
    whole_ND, scale_N, bias_N = rounded(block.out.weight, _bias(block.out), out.mean_D)
    block.out.prepacked = StaticPacking(whole_ND, scale_N, bias_N, out_range, torch.float32)
    block.up.prepacked = prepack_after_norm(block.up, up, between, (columns, -rungs * between.end))
    whole_ND, scale_N, bias_N = rounded(block.down.weight, _bias(block.down), down.mean_D)
    block.down.prepacked = StaticPacking(whole_ND[:, columns], scale_N, bias_N, between, torch.float32)


def rounded(weight_ND: Tensor, bias_N: Tensor, mean_D: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return integer weights, their scales, and a bias that makes up for the rounding."""
    whole_ND, scale_N = quantize_weights(weight_ND)
    return whole_ND, scale_N, bias_N + rounding_loss(weight_ND, whole_ND, scale_N, mean_D)


def prepack_after_norm(
    linear: Linear, inputs: Columns, output: Range | torch.dtype, chosen: tuple[Tensor, Tensor] | None = None
) -> StaticPacking:
    """Prepack a layer after a norm, with evened input columns; `chosen` are output columns, and an offset for each."""
    middle_D, reach_D = (inputs.low_D + inputs.high_D) / 2, (inputs.high_D - inputs.low_D) / 2
    equal_D = equaliser(linear.weight, reach_D, MIGRATION_STRENGTH)
    whole_ND, scale_N, bias_N = rounded(
        linear.weight * equal_D, _bias(linear) + linear.weight @ middle_D, (inputs.mean_D - middle_D) / equal_D
    )
    if chosen is not None:
        whole_ND, scale_N, bias_N = whole_ND[chosen[0]], scale_N[chosen[0]], bias_N[chosen[0]] + chosen[1]
    codes = Range.around_zero(float((reach_D / equal_D).max()))
    return StaticPacking(whole_ND, scale_N, bias_N, codes, output, (-middle_D / equal_D, 1 / equal_D))


def ladder(top_C: Tensor, num_rungs: int) -> tuple[Tensor, Tensor, float]:
    """Return columns with the added ones at the end, the rung of each, and the range that a rung must cover.

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


def _bias(linear: Linear) -> Tensor:
    return torch.zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
