"""The values inside an encoder on a sample, in float32.    T tokens, D width of a product's input.

Random tokens stand for real text. Short texts are mostly what stands before and behind every text, and long ones that
repeat a few tokens are what a language looks like to a vocabulary that was not made for it.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn.encoder import Encoder
from munjang.nn.int8.weights import blocks_of, equalisers
from munjang.nn.linear import Linear
from munjang.nn.sample import SAMPLE_TOKENS, sample
from munjang.text.packing import Packed

NUM_LONG_TEXTS, LONG_TOKENS, NUM_DISTINCT_TOKENS = 4, 128, 12
SAMPLE_LENGTHS = [LONG_TOKENS] * NUM_LONG_TEXTS + [SAMPLE_TOKENS] * 28 + [1, 2, 3, 4] * 2


@dataclass
class Columns:
    """The smallest, largest and mean value of each column of a layer's input."""

    low_D: Tensor
    high_D: Tensor
    mean_D: Tensor


@dataclass
class Observation:
    """A sample, its token vectors after every layer, the inputs of each linear layer, and the equalisers."""

    batch: Packed
    states: list[Tensor]
    inputs: dict[Linear, Columns]
    equal: dict[nn.Module, Tensor]


def observe(encoder: Encoder) -> Observation:
    """Run a sample through an encoder in float32 and observe its layers."""
    batch = sample(encoder, SAMPLE_LENGTHS, has_ends=True, num_distinct=[NUM_DISTINCT_TOKENS] * NUM_LONG_TEXTS)
    ranges: dict[Linear, list[Tensor]] = {}

    def see(linear: nn.Module, args: tuple[Tensor, ...]) -> None:
        assert isinstance(linear, Linear)
        ranges.setdefault(linear, []).append(torch.stack([args[0].amin(0), args[0].amax(0), args[0].mean(0)]))

    layers = [linear for block in blocks_of(encoder) for linear in block.products]
    hooks = [linear.register_forward_pre_hook(see) for linear in layers]
    try:
        states = encoder.layers(batch)
    finally:
        for hook in hooks:
            hook.remove()
    inputs = {}
    for linear, uses in ranges.items():  # a shared layer has several
        values_U3D = torch.stack(uses)
        inputs[linear] = Columns(values_U3D[:, 0].amin(0), values_U3D[:, 1].amax(0), values_U3D[:, 2].mean(0))
    return Observation(batch, states, inputs, equalisers(encoder))


def loss(exact_TD: Tensor, other_TD: Tensor, batch: Packed) -> float:
    """Return 1 minus the mean cosine of the texts' mean vectors, of the length where it is largest."""
    worst = 0.0
    for start, texts, length in batch.runs:
        if length >= min(SAMPLE_TOKENS, max(batch.lengths)):  # four tiny texts say little
            exact, other = (
                side[start : start + texts * length].view(texts, length, -1).mean(1) for side in (exact_TD, other_TD)
            )
            worst = max(worst, 1 - float(F.cosine_similarity(exact, other).mean()))
    return worst
