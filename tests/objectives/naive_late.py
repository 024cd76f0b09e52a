"""Objectives of late interaction, token by token."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.objectives.naive_parts import Options, margins, mean


def score(query_TD: Tensor, document_TD: Tensor, is_mean: bool) -> Tensor:
    best = [torch.stack([one @ other for other in document_TD]).max() for one in query_TD]
    return torch.stack(best).sum() / (len(best) if is_mean else 1)


def late_in_batch(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    queries, *columns = outputs
    texts, costs = extras["texts"].tolist(), []
    for row, query in enumerate(queries):
        there, own = [], 0
        for number, column in enumerate(columns, 1):
            for other, document in enumerate(column):
                is_own = (number, other) == (1, row)
                if is_own or texts[other][number] not in (texts[row][0], texts[row][1]):
                    own = len(there) if is_own else own
                    there.append(score(query, document, options.get("is_mean", True)))
        costs.append(-(torch.stack(there) / options.get("temperature", 0.02)).log_softmax(0)[own])
    return mean(costs, outputs[0])


def late_kl(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for (query, *rest), scores in zip(zip(*outputs, strict=True), extras["scores"], strict=True):
        there = [k for k in range(len(rest)) if not scores[k].isnan()]
        if there:
            values = torch.stack([score(query, rest[k], options.get("is_mean", True)) for k in there])
            student = (values / options.get("temperature", 0.05)).log_softmax(0)
            teacher = (scores[there] / (options.get("teacher_temperature", 1.0) or 1)).softmax(0)
            costs.append((teacher * (teacher.log() - student)).sum() * options.get("scale", 1.0))
    return mean(costs, outputs[0])


def late_margin_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    values = [
        [score(query, each, options.get("is_mean", False)) for each in rest]
        for query, *rest in zip(*outputs, strict=True)
    ]
    return margins(values, extras["scores"], outputs[0])
