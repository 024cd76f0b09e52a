"""Integer weights with a scale per output.    D width of the input, N of the output.

A CPU without VNNI multiplies unsigned 8-bit inputs by signed weights and adds two neighbouring products in 16 bits.
Their sum fits if the weights of a pair that have the same sign add up to at most 128 (255 · 128 = 32,640), and nothing
more is needed: a single weight may be as large as 127. So the step comes from the largest pair there. Limiting every
weight to 63 instead loses two to three times as much of the cosine (docs/log.md, 2026-11-18).
"""

import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn.encoder import Block, Encoder
from munjang.nn.sample import SAMPLE_TOKENS, sample

MAX_WEIGHT = 127
NUM_SAMPLE_TEXTS = 16
MEAN_CORRECTION_WEIGHT = 0.5  # random tokens share about half of the mean input with real text


def quantize_weights(weight_ND: Tensor, is_pairwise: bool = False) -> tuple[Tensor, Tensor]:
    """Return integer weights and a scale per output; `is_pairwise` keeps the sums of pairs within 16 bits."""
    largest_N = weight_ND.abs().amax(1)
    if is_pairwise:
        pairs_NPX = F.pad(weight_ND, (0, weight_ND.shape[1] % 2)).view(len(weight_ND), -1, 2)
        for side_NPX in (pairs_NPX.clamp(min=0), pairs_NPX.clamp(max=0)):
            # rounding adds at most half to each: 127 and two halves are 128
            largest_N = largest_N.maximum(side_NPX.sum(2).abs().amax(1))
    scale_N = largest_N.clamp(min=1e-10) / MAX_WEIGHT
    return (weight_ND / scale_N[:, None]).round().char(), scale_N


def rounding_loss(weight_ND: Tensor, whole_ND: Tensor, scale_N: Tensor, mean_D: Tensor) -> Tensor:
    """Return the mean loss of each output by rounding, to be added to the bias."""
    return MEAN_CORRECTION_WEIGHT * ((weight_ND - whole_ND * scale_N[:, None]) @ mean_D)


def blocks_of(encoder: Encoder) -> list[Block]:
    """Return the blocks, shared ones once."""
    return [block for block in encoder.blocks if isinstance(block, Block)]


def equalisers(encoder: Encoder) -> dict[nn.Module, Tensor]:
    """Return the equaliser of each layer that follows a norm."""
    largest: dict[nn.Module, Tensor] = {}

    def see(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        columns_D = args[0].abs().amax(0)
        largest[module] = columns_D.maximum(largest.get(module, columns_D))

    layers = [linear for block in blocks_of(encoder) for linear in (block.qkv, block.up)]
    hooks = [linear.register_forward_pre_hook(see) for linear in layers]
    try:
        encoder(sample(encoder, [SAMPLE_TOKENS] * NUM_SAMPLE_TEXTS))
    finally:
        for hook in hooks:
            hook.remove()
    return {linear: equaliser(linear.weight, largest[linear], 0.5) for linear in layers}


def equaliser(weight_ND: Tensor, largest_D: Tensor, strength: float) -> Tensor:
    """Return the factors by which to shrink the input's columns: powers of two, so that undoing it is exact.

    `strength` is SmoothQuant's migration strength; 0.5 leaves the input and the weights equally large.
    """
    weights_D = weight_ND.abs().amax(0).clamp(min=1e-5)
    equal_D = largest_D.clamp(min=1e-5) ** strength / weights_D ** (1 - strength)
    return (equal_D / equal_D.mean()).log2().round().exp2()
