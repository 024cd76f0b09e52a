"""Objectives of a cross-encoder's logits, example by example and straight from their formulas."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.objectives.naive_parts import Options, margins, mean, negative_log_share


def _activated(options: Options, logit: Tensor, default: str = "identity") -> Tensor:
    return logit.sigmoid() if options.get("activation", default) == "sigmoid" else logit


def cross_bce(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, weight = [], options.get("positive_weight", 1.0)
    for logit, y in zip(outputs[0][:, 0], extras[options.get("target", "scores")], strict=True):
        costs.append(-(weight * y * logit.sigmoid().log() + (1 - y) * (1 - logit.sigmoid()).log()))
    return mean(costs, outputs[0])


def cross_entropy(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    pairs = zip(outputs[0], extras["labels"], strict=True)
    return mean([negative_log_share(list(logits), int(label)) for logits, label in pairs], outputs[0])


def cross_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    pairs = zip(outputs[0][:, 0], extras["scores"], strict=True)
    return mean([(_activated(options, logit) - score) ** 2 for logit, score in pairs], outputs[0])


def cross_margin_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    values = [[_activated(options, logit[0]) for logit in row] for row in zip(*outputs, strict=True)]
    return margins(values, extras["scores"], outputs[0])


def cross_in_batch(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, scale = [], options.get("scale", 10.0)
    for row in zip(*outputs, strict=True):
        costs.append(negative_log_share([_activated(options, logit[0], "sigmoid") * scale for logit in row], 0))
    return mean(costs, outputs[0])


def listnet(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for row, scores in zip(zip(*outputs, strict=True), extras["scores"], strict=True):
        there = [k for k in range(len(row)) if not scores[k].isnan()]
        if there:
            shares = torch.stack([row[k][0] for k in there]).softmax(0)
            costs.append(-(scores[there].softmax(0) * shares.log()).sum())
    return mean(costs, outputs[0])


def _pair_weight(kind: str, gains: list[float], i: int, j: int) -> float:
    def discount(place: int) -> float:
        return math.log2(2 + place)

    apart, gain = abs(i - j), abs(gains[i] - gains[j])
    step = 1 / discount(apart - 1) - 1 / discount(apart) if apart else 0.0
    swap = abs(1 / discount(i) - 1 / discount(j))
    weights = {"none": 1.0, "ndcg1": gains[i] / discount(i), "ndcg2": step * gain, "lambda_rank": swap * gain}
    return 10 * step * gain + swap * gain if kind == "ndcg2++" else weights[kind]


def lambda_loss(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, kind, top = [], options.get("weighting", "ndcg2++"), options.get("k") or len(outputs)
    for row, all_scores in zip(zip(*outputs, strict=True), extras["scores"].tolist(), strict=True):
        there = [(logit[0], score) for logit, score in zip(row, all_scores, strict=True) if not math.isnan(score)]
        there.sort(key=lambda pair: -pair[0].item())
        raw = [2 ** max(score, 0) - 1 for _, score in there]
        ideal = sum(gain / math.log2(2 + place) for place, gain in enumerate(sorted(raw, reverse=True)[:top]))
        gains = [gain / max(ideal, 1e-10) for gain in raw]
        for i, (high, better) in enumerate(there):
            for j, (low, worse) in enumerate(there):
                if (better > worse or kind == "ndcg1") and min(i, j) < top:
                    ahead = (options.get("sigma", 1.0) * (high - low)).sigmoid().log() / math.log(2)
                    costs.append(-_pair_weight(kind, gains, i, j) * ahead)
    return mean(costs, outputs[0])


def ranknet(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    return lambda_loss({**options, "weighting": "none"}, outputs, extras, parameters)
