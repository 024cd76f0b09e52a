"""Bootstrap: how far a metric would move with other rows, and whether two models differ on the same ones.    N rows.

A statistic is a function of weights: how often each row was drawn. Draws depend on the seed and the number of rows
alone, so those of two models on one dataset are paired, and their difference is that of the models.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from munjang.evaluation.metrics.correlation import rank_groups
from munjang.types import Doubles, Ints

Statistic: TypeAlias = Callable[[Doubles], float]
NUM_DRAWS = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Sample:
    """A metric as a function of how often each row is drawn."""

    num_rows: int
    statistic: Statistic


@dataclass(frozen=True)
class Difference:
    """By how much one model is better than another on the same rows."""

    value: float
    interval: tuple[float, float]
    p: float  # two-sided: how often draws would differ as much if the models did not

    @property
    def is_significant(self) -> bool:
        """Tell whether chance explains it with a probability below 5 %."""
        return self.p < 1 - CONFIDENCE


def draw(sample: Sample, seed: int = 0) -> Doubles:
    """Return the metric of `NUM_DRAWS` sets of rows, drawn with replacement; NaN where it is undefined."""
    random, num_rows = np.random.default_rng(seed), sample.num_rows
    counts = (np.bincount(random.integers(num_rows, size=num_rows), minlength=num_rows) for _ in range(NUM_DRAWS))
    return np.array([sample.statistic(weights.astype(np.float64)) for weights in counts])


def interval(draws: Doubles) -> tuple[float, float] | None:
    """Return the middle 95 % of the draws; None where fewer than half are defined.

    >>> interval(np.linspace(0, 1, 41))
    (0.025, 0.975)
    """
    defined = draws[np.isfinite(draws)]
    if 2 * len(defined) < len(draws) or not len(defined):
        return None
    low, high = np.quantile(defined, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return round(float(low), 6), round(float(high), 6)


def difference(value: float, first: Doubles, second: Doubles) -> Difference | None:
    """Compare two models by their paired draws; `value` is the difference on the rows as they are."""
    differences = first - second
    between = interval(differences)
    if between is None or not np.isfinite(value):
        return None
    defined = differences[np.isfinite(differences)]
    tail = min(int(np.sum(defined <= 0)), int(np.sum(defined >= 0)))
    return Difference(value, between, min(1.0, 2 * (tail + 1) / (len(defined) + 1)))  # never 0: draws are finite


def mean_of(values_N: ArrayLike) -> Sample:
    """Resample the mean of a value for each row, such as right or wrong."""
    values = np.asarray(values_N, np.float64)
    return Sample(len(values), lambda weights_N: float(values @ weights_N / len(values)))


def spearman_of(first_N: ArrayLike, second_N: ArrayLike) -> Sample:
    """Resample Spearman's correlation; values are sorted once, not for every draw."""
    sides = [rank_groups(np.asarray(side, np.float64)) for side in (first_N, second_N)]

    def statistic(weights_N: Doubles) -> float:
        first, second = (_ranks(group_N, weights_N) for group_N in sides)
        return _pearson(first, second, weights_N)

    return Sample(len(sides[0]), statistic)


def average_precision_of(scores_N: ArrayLike, positive_N: ArrayLike) -> Sample:
    """Resample average precision; equal scores are one step."""
    scores, positive = np.asarray(scores_N, np.float64), np.asarray(positive_N, np.float64)
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    ends = np.append(scores[1:] != scores[:-1], True)[: len(scores)]

    def statistic(weights_N: Doubles) -> float:
        weights = weights_N[order]
        found, taken = np.cumsum(weights * positive)[ends], np.cumsum(weights)[ends]
        if not found[-1]:
            return float("nan")
        return float(np.sum(np.diff(found, prepend=0) * found / np.maximum(taken, 1)) / found[-1])

    return Sample(len(scores), statistic)


def _ranks(group_N: Ints, weights_N: Doubles) -> Doubles:
    """Rank rows that are drawn so many times; rows of a group share the mean of their ranks."""
    sizes = np.bincount(group_N, weights_N)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[group_N], np.float64)


def _pearson(first_N: Doubles, second_N: Doubles, weights_N: Doubles) -> float:
    total = weights_N.sum()
    first, second = (side - side @ weights_N / total for side in (first_N, second_N))
    spread = (first * first) @ weights_N * ((second * second) @ weights_N)
    return float((first * second) @ weights_N / np.sqrt(spread)) if spread > 0 else float("nan")
