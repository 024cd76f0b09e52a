"""Logistic regression: scikit-learn's weights; the cost is the one that is best on held-out rows."""

import numpy as np
import pytest
import sklearn.datasets
import sklearn.linear_model

from munjang.errors import InputError
from munjang.vectors.logistic import COSTS, _folds, fit, fit_best


@pytest.mark.parametrize("num_classes", [2, 3, 5])
@pytest.mark.parametrize("cost", [0.1, 1.0, 8.0])
def test_weights_as_scikit_learn(num_classes: int, cost: float) -> None:
    vectors, labels = sklearn.datasets.make_classification(
        200, 12, n_informative=8, n_classes=num_classes, random_state=num_classes
    )
    theirs = sklearn.linear_model.LogisticRegression(C=cost, tol=1e-10, max_iter=2000).fit(vectors, labels)
    found = fit(vectors, labels + 7, cost, max_rounds=500)
    np.testing.assert_allclose(found.weights_CD.numpy(), theirs.coef_, atol=2e-4)
    assert np.mean(found.predict(vectors) == theirs.predict(vectors) + 7) >= 0.995  # one row lies on the border
    single = fit(vectors.astype(np.float32), labels, cost)
    assert np.mean(single.predict(vectors.astype(np.float32)) == theirs.predict(vectors)) >= 0.99


def test_cost_is_chosen_on_held_out_rows() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 120)
    # small signal in a small scale: only a high cost lets the weights grow
    vectors = (0.02 * labels[:, None] + 0.01 * random.normal(size=(120, 6))).astype(np.float32)
    probe, cost = fit_best(vectors, labels)
    assert cost in COSTS
    assert np.mean(probe.predict(vectors) == labels) > 0.9
    assert fit_best(vectors, labels, costs=[0.5])[1] == 0.5


def test_folds_hold_out_each_row_once_and_every_class() -> None:
    labels = np.array([0] * 20 + [1] * 10 + [2] * 5)
    held = np.stack(list(_folds(labels, seed=0)))
    np.testing.assert_array_equal(held.sum(0), 1)
    for fold in held:
        assert np.bincount(labels[fold], minlength=3).tolist() == [4, 2, 1]


def test_a_class_of_one_row_can_be_learnt() -> None:
    vectors = np.eye(3, dtype=np.float32)
    probe, cost = fit_best(vectors, np.array([0, 1, 2]))
    assert cost == 1.0  # nothing to hold out
    assert probe.predict(vectors).tolist() == [0, 1, 2]


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match="two classes or more, not of 1"):
        fit(np.zeros((3, 2), np.float32), np.zeros(3, np.int64))


def test_a_class_of_one_row_leaves_the_choice_of_the_cost() -> None:
    """It is trained on in every fold; once it set the cost to 1 without a word."""
    random = np.random.default_rng(0)
    labels = np.array([*random.integers(0, 2, 120), 2])
    vectors = (0.02 * labels[:, None] + 0.01 * random.normal(size=(121, 6))).astype(np.float32)
    assert fit_best(vectors, labels)[1] == COSTS[-1]
    held = np.stack(list(_folds(labels, 0)))
    assert held.sum(0).tolist() == [1] * 120 + [0]
