"""Parts of several naive objectives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

Options = Mapping[str, Any]
Naive = Callable[[Options, Sequence[Tensor], Mapping[str, Tensor], Mapping[str, Tensor]], Tensor]


def mean(values: Sequence[Tensor], none: Tensor) -> Tensor:
    return sum(values[1:], values[0]) / len(values) if values else none.sum() * 0


def negative_log_share(values: Sequence[Tensor], right: int) -> Tensor:
    return -(values[right].exp() / sum(value.exp() for value in values)).log()


def margins(values: Sequence[Sequence[Tensor]], scores: Tensor, none: Tensor) -> Tensor:
    costs = []
    for row, wanted in zip(values, scores, strict=True):
        for k, value in enumerate(row[1:]):
            margin = wanted if wanted.ndim == 0 else wanted[0] - wanted[k + 1]
            if not margin.isnan():
                costs.append((row[0] - value - margin) ** 2)
    return mean(costs, none)
