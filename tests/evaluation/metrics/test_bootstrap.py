"""Bootstrap: a statistic of weights is the metric of the repeated rows; draws of two models are paired."""

from collections.abc import Callable

import numpy as np
import pytest

from munjang.evaluation.metrics.bootstrap import (
    Sample,
    average_precision_of,
    difference,
    draw,
    interval,
    mean_of,
    spearman_of,
)
from munjang.evaluation.metrics.classification import average_precision
from munjang.evaluation.metrics.correlation import spearman

RANDOM = np.random.default_rng(5)
SCORES, GOLD = RANDOM.integers(0, 9, 40) / 9, RANDOM.integers(0, 5, 40).astype(float)
POSITIVE = RANDOM.random(40) < 0.4


@pytest.mark.parametrize(
    ("sample", "metric"),
    [
        (mean_of(GOLD), lambda rows: GOLD[rows].mean()),
        (spearman_of(SCORES, GOLD), lambda rows: spearman(SCORES[rows], GOLD[rows])),
        (average_precision_of(SCORES, POSITIVE), lambda rows: average_precision(SCORES[rows], POSITIVE[rows])),
    ],
)
def test_weights_are_repeated_rows(sample: Sample, metric: Callable[[np.ndarray], float]) -> None:  # type: ignore[type-arg]
    for seed in range(20):
        rows = np.random.default_rng(seed).integers(40, size=40)
        weights = np.bincount(rows, minlength=40).astype(float)
        assert sample.statistic(weights) == pytest.approx(metric(rows), abs=1e-12)
    assert sample.statistic(np.ones(40)) == pytest.approx(metric(np.arange(40)), abs=1e-12)


def test_interval_of_a_mean_is_the_textbooks() -> None:
    values = np.random.default_rng(0).random(400) < 0.7
    between = interval(draw(mean_of(values)))
    assert between is not None
    half = 1.96 * np.sqrt(values.mean() * (1 - values.mean()) / 400)
    assert between[0] == pytest.approx(values.mean() - half, abs=0.008)
    assert between[1] == pytest.approx(values.mean() + half, abs=0.008)


def test_paired_draws_see_what_single_intervals_hide() -> None:
    first = np.random.default_rng(1).random(200) < 0.6
    second = first.copy()
    second[np.flatnonzero(first)[:8]] = False  # worse on 8 rows, better on none
    one, other = draw(mean_of(first)), draw(mean_of(second))
    a, b = interval(one), interval(other)
    assert a is not None
    assert b is not None
    assert a[0] < b[1]  # the intervals overlap
    found = difference(0.04, one, other)
    assert found is not None
    assert found.is_significant
    assert found.interval[0] > 0
    assert found.p >= 2 / 1001


def test_no_difference_is_not_significant() -> None:
    random = np.random.default_rng(2)
    first, second = random.random(200) < 0.6, random.random(200) < 0.6
    gap = float(first.mean() - second.mean())
    found = difference(gap, draw(mean_of(first)), draw(mean_of(second)))
    assert found is not None
    assert not found.is_significant
    same = difference(0.0, draw(mean_of(first)), draw(mean_of(first)))
    assert same is not None
    assert same.p == 1.0


def test_undefined() -> None:
    assert interval(draw(spearman_of([1, 1, 1], [1, 2, 3]))) is None
    assert interval(draw(average_precision_of([0.1, 0.2], [False, False]))) is None
    assert difference(float("nan"), np.ones(5), np.ones(5)) is None
