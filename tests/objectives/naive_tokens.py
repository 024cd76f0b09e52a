"""Objectives of token states, example by example and straight from their formulas."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from munjang.objectives.base import IGNORED
from tests.objectives.naive_parts import Options, mean, negative_log_share


def masked(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for state, target in zip(outputs[0], extras["targets"], strict=True):
        if target != IGNORED:
            hidden = parameters["transform.0.weight"] @ state + parameters["transform.0.bias"]
            hidden = layer_norm(torch.nn.functional.gelu(hidden), parameters, "transform.2")
            logits = extras["words"] @ hidden + parameters["bias"]
            costs.append(negative_log_share(list(logits), int(target)))
    return mean(costs, outputs[0])


def layer_norm(state: Tensor, parameters: Mapping[str, Tensor], name: str) -> Tensor:
    state = (state - state.mean()) / (state.var(unbiased=False) + 1e-5).sqrt()
    return state * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def linear(state: Tensor, parameters: Mapping[str, Tensor], name: str) -> Tensor:
    return parameters[f"{name}.weight"] @ state + parameters[f"{name}.bias"]


def _decode(vector: Tensor, tokens: Sequence[int], words: Tensor, parameters: Mapping[str, Tensor]) -> list[Tensor]:
    """States after each token of one text; cross-attention is written out as attention to one key. One head."""
    width, states = words.shape[1], []
    for place, token in enumerate(tokens):
        angles = [place * 10_000 ** (-2 * i / width) for i in range((width + 1) // 2)]
        wave = [*(math.sin(angle) for angle in angles), *(math.cos(angle) for angle in angles)][:width]
        wave_of_place = torch.tensor(wave, dtype=words.dtype)
        states.append(layer_norm(words[token], parameters, "decoder.start") + wave_of_place)
    for layer in sorted({name.rsplit(".", 2)[0] for name in parameters if ".layers." in name}):
        qkv = [
            linear(layer_norm(each, parameters, f"{layer}.norm_before"), parameters, f"{layer}.qkv") for each in states
        ]
        after = []
        for i, state in enumerate(states):
            query = qkv[i][:width]
            shares = torch.stack([query @ qkv[j][width : 2 * width] for j in range(i + 1)]) / width**0.5
            seen = sum(share * qkv[j][2 * width :] for j, share in enumerate(shares.softmax(0)))
            state = state + linear(seen, parameters, f"{layer}.out")
            only_share = torch.stack([state @ state]).softmax(0)[0]  # whatever the query: 1
            state = state + only_share * linear(vector, parameters, f"{layer}.sentence")
            hidden = linear(layer_norm(state, parameters, f"{layer}.norm_between"), parameters, f"{layer}.up")
            after.append(state + linear(torch.nn.functional.gelu(hidden), parameters, f"{layer}.down"))
        states = after
    return [layer_norm(state, parameters, "decoder.norm") for state in states]


def denoising(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, start, words = [], 0, extras["words"]
    for vector, length in zip(outputs[0], extras["lengths"].tolist(), strict=True):
        tokens = extras["targets"][start : start + length].tolist()
        start += length
        for state, wanted in zip(_decode(vector, tokens[:-1], words, parameters), tokens[1:], strict=True):
            costs.append(negative_log_share(list(words @ state + parameters["bias"]), wanted))
    return mean(costs, outputs[0])
