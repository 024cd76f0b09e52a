"""The entry: prepack an encoder's layers in 8 bits, each in the fastest way that keeps the vectors close enough.

Static activation scales are the fastest (nn/int8/static.py: VNNI, plain layers), dynamic ones, one per row of the
input, are more exact (nn/int8/dynamic.py), and a layer falls back to float32. A sample decides at load.
"""

import os
import warnings
from collections.abc import Callable

import torch
from torch import nn

from munjang.errors import UnsupportedModel
from munjang.nn.cpu import can_pack, has_vnni
from munjang.nn.encoder import Block, Encoder
from munjang.nn.int8.codes import silence_deprecation
from munjang.nn.int8.dynamic import prepack_dynamic
from munjang.nn.int8.observe import Observation, loss, observe
from munjang.nn.int8.static import can_be_static, prepack_static
from munjang.nn.int8.weights import blocks_of

SCALES_VARIABLE = "MUNJANG_INT8"  # "dynamic": a scale per row of the input, more exact and a fifth slower
# 1 - cosine of the sample to float32. We promise 0.003, and real text in a language that a model was not made for loses
# up to 1.6 times as much as the sample (docs/log.md, 2026-11-18); it flatters static scales, which are fitted
# to it
MAX_LOSS = 0.0019
STATIC_LOSS_FACTOR = 0.7

Way = Callable[[Block], None]


@torch.no_grad()
def prepack(encoder: nn.Module) -> None:
    """Prepack the layers of an encoder in 8 bits; their exact packings must be there already."""
    if not can_pack(torch.int8):
        raise UnsupportedModel("dtype='int8' needs an x86 CPU with AVX2 and a torch with oneDNN; leave dtype out.")
    if not isinstance(encoder, Encoder):
        raise UnsupportedModel(
            f"dtype='int8' is for encoders that Munjang computes itself, not {type(encoder).__name__}; leave it out."
        )
    silence_deprecation()
    exact = {block: [linear.prepacked for linear in block.products] for block in blocks_of(encoder)}
    observation, is_pairwise = observe(encoder), not has_vnni()

    def leave_exact(block: Block) -> None:
        for linear, packed in zip(block.products, exact[block], strict=True):
            linear.prepacked = packed

    ways: list[Way] = [lambda block: prepack_dynamic(block, observation, is_pairwise), leave_exact]
    if can_be_static(encoder) and os.environ.get(SCALES_VARIABLE) != "dynamic":
        ways.insert(0, lambda block: prepack_static(block, observation))
    way_of = _choose(encoder, observation, ways)
    num_exact = sum(way == len(ways) - 1 for way in way_of.values())
    if 2 * num_exact > len(way_of):
        warnings.warn(
            f"dtype='int8' would change this model's vectors too much: {num_exact} of its {len(way_of)} layers stay in "
            "float32, so little speed is gained.",
            stacklevel=2,
        )


def _choose(encoder: Encoder, observation: Observation, ways: list[Way]) -> dict[Block, int]:
    """Prepack all layers in the first way; while the loss is too large, prepack the worst in the next way."""
    way_of = dict.fromkeys(blocks_of(encoder), 0)
    for block in way_of:
        ways[0](block)
    while (first := min(way_of.values())) < len(ways) - 1:
        has_static_scales = len(ways) > 2 and not first
        max_loss = MAX_LOSS * (STATIC_LOSS_FACTOR if has_static_scales else 1)
        if (now := _loss(encoder, observation)) <= max_loss:
            break
        if has_static_scales and now > 2 * MAX_LOSS:  # layer by layer would take as long as all that follows
            for block in way_of:
                way_of[block] = 1
                ways[1](block)
            continue
        errors = _errors(encoder, observation)
        movable = sorted((block for block in way_of if way_of[block] == first), key=errors.__getitem__)
        # losses of layers add up: move as many as would be enough if the next way were exact, at least one
        allowed, moved = sum(errors.values()) * max_loss / now, 0.0
        while movable and (not moved or sum(errors.values()) - moved > allowed):
            block = movable.pop()
            moved += errors[block]
            way_of[block] += 1
            ways[way_of[block]](block)
    return way_of


def _errors(encoder: Encoder, observation: Observation) -> dict[Block, float]:
    """Return the loss of each layer alone, with its input in float32."""
    errors = dict.fromkeys(blocks_of(encoder), 0.0)
    for index, (step, before_TD) in enumerate(zip(encoder.steps(observation.batch), observation.states, strict=False)):
        block = encoder.blocks[encoder.order[index]]
        assert isinstance(block, Block)
        errors[block] += loss(observation.states[index + 1], step(before_TD), observation.batch)
    return errors


def _loss(encoder: Encoder, observation: Observation) -> float:
    return loss(observation.states[-1], encoder.layers(observation.batch)[-1], observation.batch)
