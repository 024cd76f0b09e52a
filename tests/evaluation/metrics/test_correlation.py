"""Correlations: by hand, and as scipy computes them."""

import math

import numpy as np
import pytest
import scipy.stats

from munjang.errors import InputError
from munjang.evaluation.metrics.correlation import pearson, ranks, spearman


def test_by_hand() -> None:
    # deviations (-1, 0, 1) and (-1, 1, 0): 1 / 2
    assert pearson([1, 2, 3], [4, 6, 5]) == pytest.approx(0.5)
    assert spearman([1, 2, 3], [1, 100, 10]) == pytest.approx(0.5)
    assert spearman([1, 2, 3], [3, 2, 1]) == -1
    assert ranks([7, 7, 1, 7]).tolist() == [3, 3, 1, 3]


@pytest.mark.parametrize("seed", range(8))
def test_as_scipy_with_ties(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = random.integers(0, 9, 60).astype(float)
    second = np.round(first + random.normal(size=60), seed % 3)
    assert pearson(first, second) == pytest.approx(scipy.stats.pearsonr(first, second).statistic, abs=1e-12)
    assert spearman(first, second) == pytest.approx(scipy.stats.spearmanr(first, second).statistic, abs=1e-12)
    np.testing.assert_array_equal(ranks(second), scipy.stats.rankdata(second))


def test_scale_does_not_matter() -> None:
    first, second = np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.0, 1.0, 5.0, 4.0])
    for scale in (1e-200, 1e200):
        assert pearson(first * scale, second) == pytest.approx(pearson(first, second), abs=1e-12)


@pytest.mark.parametrize(("first", "second"), [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3]), ([1, 2], [0.5, 0.5])])
def test_undefined_is_nan(first: list[float], second: list[float]) -> None:
    assert math.isnan(pearson(first, second))
    assert math.isnan(spearman(first, second))


def test_refused() -> None:
    with pytest.raises(InputError, match=r"not \(2,\) and \(3,\)"):
        spearman([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="NaN or infinity"):
        spearman([1, math.nan], [1, 2])
