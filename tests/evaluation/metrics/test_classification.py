"""Classes and thresholds: by hand, by trying every threshold, and as scikit-learn computes them."""

import math

import numpy as np
import pytest
import sklearn.metrics

from munjang.errors import InputError
from munjang.evaluation.metrics.classification import (
    accuracy,
    average_precision,
    best_accuracy,
    best_f1,
    f1,
    macro_f1,
)


def test_by_hand() -> None:
    assert accuracy([1, 2, 3, 0], [1, 2, 0, 0]) == 0.75
    assert f1([1, 1, 0, 0], [1, 0, 1, 0]) == 0.5
    assert average_precision([0.9, 0.8, 0.1], [True, False, True]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([0.9, 0.8], [True, False], num_positive=2) == pytest.approx(0.5)  # one was never scored
    best = best_f1([0.9, 0.7, 0.5, 0.1], [True, True, False, False])
    assert (best.value, best.precision, best.recall) == (1, 1, 1)
    assert best.threshold == pytest.approx(0.6)


@pytest.mark.parametrize("seed", range(8))
def test_as_scikit_learn_with_ties(seed: int) -> None:
    random = np.random.default_rng(seed)
    positive = random.random(50) < 0.4
    scores = np.round(random.random(50) + 0.3 * positive, 1)
    assert average_precision(scores, positive) == pytest.approx(
        sklearn.metrics.average_precision_score(positive, scores), abs=1e-12
    )
    best, exact = best_f1(scores, positive), best_accuracy(scores, positive)
    tried = [scores >= threshold for threshold in [*np.unique(scores), 9.0]]
    assert best.value == pytest.approx(max(sklearn.metrics.f1_score(positive, each) for each in tried), abs=1e-12)
    assert exact.value == pytest.approx(max(np.mean(positive == each) for each in tried), abs=1e-12)
    for found, measure in ((best, sklearn.metrics.f1_score), (exact, sklearn.metrics.accuracy_score)):
        predicted = scores >= found.threshold  # the threshold gives what it promises
        assert measure(positive, predicted) == pytest.approx(found.value, abs=1e-12)
        assert sklearn.metrics.precision_score(positive, predicted) == pytest.approx(found.precision, abs=1e-12)
        assert sklearn.metrics.recall_score(positive, predicted) == pytest.approx(found.recall, abs=1e-12)
    predicted, labels = random.integers(0, 4, 50), random.integers(0, 5, 50)
    assert macro_f1(predicted, labels) == pytest.approx(
        sklearn.metrics.f1_score(labels, predicted, average="macro"), abs=1e-12
    )


def test_no_positive_is_undefined() -> None:
    assert math.isnan(average_precision([0.1, 0.2], [False, False]))
    assert math.isnan(best_f1([0.1, 0.2], [False, False]).value)
    best = best_accuracy([0.1, 0.2], [False, False])
    assert (best.value, best.threshold > 0.2) == (1.0, True)  # no to everything


def test_nothing_at_all() -> None:
    assert math.isnan(accuracy([], []))
    assert math.isnan(average_precision([], []))
    assert math.isnan(best_f1([], []).value)
    assert math.isnan(best_accuracy([], []).value)


def test_refused() -> None:
    with pytest.raises(InputError, match="equal length"):
        accuracy([1], [1, 2])
    with pytest.raises(InputError, match="finite"):
        average_precision([math.nan], [True])
