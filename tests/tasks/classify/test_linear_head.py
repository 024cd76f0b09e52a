"""The head is scikit-learn's logistic regression; folds hold every row out once."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from munjang.tasks.classify.linear_head import NO_FOLD, best_cost, fit, fold_rows, held_out_logits


def clouds(num_classes: int = 3, each: int = 20, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    centres = random.normal(size=(num_classes, width))
    labels = np.repeat(np.arange(num_classes), each)
    return (centres[labels] + random.normal(size=(len(labels), width)) * 0.8).astype(np.float32), labels


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("cost", [0.25, 8.0])
def test_as_scikit_learn(num_classes: int, cost: float) -> None:
    vectors, labels = clouds(num_classes)
    head = fit(vectors, np.eye(num_classes, dtype=bool)[labels], cost)
    theirs = LogisticRegression(C=cost, tol=1e-8, max_iter=1000).fit(vectors, labels)
    found = np.exp(head.logits(vectors))
    np.testing.assert_allclose(found / found.sum(1, keepdims=True), theirs.predict_proba(vectors), atol=2e-3)


def test_several_labels_as_scikit_learn() -> None:
    vectors, labels = clouds(3)
    targets = np.eye(3, dtype=bool)[labels]
    targets[::4, 0] = True
    head = fit(vectors, targets, 1.0, is_multi_label=True)
    theirs = OneVsRestClassifier(LogisticRegression(tol=1e-8, max_iter=1000)).fit(vectors, targets)
    np.testing.assert_allclose(1 / (1 + np.exp(-head.logits(vectors))), theirs.predict_proba(vectors), atol=2e-3)


def test_a_label_that_all_have() -> None:
    vectors, labels = clouds(2, 5)
    targets = np.stack([labels == 0, np.ones(10, bool)], 1)
    head = fit(vectors, targets, is_multi_label=True)
    assert not head.weights_CD[1].any()
    assert 1 / (1 + np.exp(-head.bias_C[1])) == pytest.approx(10.5 / 11)


def test_folds_hold_every_row_out_once() -> None:
    labels = np.array([0] * 7 + [1] * 2 + [2])
    folds = fold_rows(np.eye(3, dtype=bool)[labels], 3, seed=4)
    assert folds[-1] == NO_FOLD  # the only one of its class
    assert sorted(np.bincount(folds[:9])) == [3, 3, 3]
    assert sorted(np.bincount(folds[labels == 0])) == [2, 2, 3]
    assert len(set(folds[labels == 1])) == 2
    assert (folds == fold_rows(np.eye(3, dtype=bool)[labels], 3, seed=4)).all()


def test_of_many_rows_one_fold_is_held_out() -> None:
    folds = fold_rows(np.eye(2, dtype=bool)[np.arange(12_000) % 2], 5)
    assert np.sum(folds == 0) == 2400
    assert np.sum(folds == NO_FOLD) == 9600


def test_held_out_logits_are_of_heads_without_the_row() -> None:
    vectors, labels = clouds(3, 6)
    targets = np.eye(3, dtype=bool)[labels]
    folds = fold_rows(targets, 3)
    found = held_out_logits(vectors, targets, folds, (0.5, 2.0))
    for fold in range(3):
        head = fit(vectors[folds != fold], targets[folds != fold], 2.0)
        np.testing.assert_allclose(found[2.0][folds == fold], head.logits(vectors[folds == fold]), atol=3e-3)
    right = {cost: int(np.sum(each.argmax(1) == labels)) for cost, each in found.items()}
    assert right[best_cost(found, targets)] == max(right.values())
