"""V-measure: by hand, and as scikit-learn computes it."""

import numpy as np
import pytest
import sklearn.metrics

from munjang.errors import InputError
from munjang.evaluation.metrics.clustering import agreement


def test_by_hand() -> None:
    # each cluster pure, one class cut in two halves: H(K) = 1.5 bits, H(C) = 1 bit, shared 1 bit
    found = agreement([0, 0, 1, 1], [0, 0, 1, 2])
    assert found.homogeneity == pytest.approx(1)
    assert found.completeness == pytest.approx(1 / 1.5)
    assert found.v_measure == pytest.approx(2 * (1 / 1.5) / (1 + 1 / 1.5))


@pytest.mark.parametrize("seed", range(8))
def test_as_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 5, 80)
    clusters = np.where(random.random(80) < 0.6, labels, random.integers(0, 1 + seed, 80))
    expected = sklearn.metrics.homogeneity_completeness_v_measure(labels, clusters)
    found = agreement(labels, clusters)
    assert (found.homogeneity, found.completeness, found.v_measure) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "clusters"), [([1], [1]), ([0, 0], [0, 0]), ([0, 0], [0, 1]), ([0, 1], [0, 0]), ([0, 1, 2], [2, 0, 1])]
)
def test_edges_as_scikit_learn(labels: list[int], clusters: list[int]) -> None:
    found = agreement(labels, clusters)
    expected = sklearn.metrics.homogeneity_completeness_v_measure(labels, clusters)
    assert (found.homogeneity, found.completeness, found.v_measure) == pytest.approx(expected, abs=1e-12)


def test_refused() -> None:
    with pytest.raises(InputError, match="one or more"):
        agreement([], [])
