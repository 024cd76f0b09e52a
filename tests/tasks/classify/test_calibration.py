"""Probabilities that mean what they say: by hand, and against a search over all temperatures."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.classify.calibration import (
    cross_fitted,
    expected_error,
    fit,
    none,
    reliability,
    threshold_against,
    threshold_for_accuracy,
)


def made(num_rows: int = 2000, num_classes: int = 4, temperature: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Logits that are `temperature` times too large for the labels that are drawn from them."""
    random = np.random.default_rng(0)
    true = random.normal(size=(num_rows, num_classes)) * 2
    shares = np.exp(true) / np.exp(true).sum(1, keepdims=True)
    labels = np.array([random.choice(num_classes, p=share) for share in shares])
    return true * temperature, np.eye(num_classes, dtype=bool)[labels]


def log_loss(logits: np.ndarray, targets: np.ndarray) -> float:
    shifted = logits - logits.max(1, keepdims=True)
    return float(-(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))[targets].mean())


def test_temperature_is_the_best_of_all() -> None:
    logits, targets = made()
    found = fit(logits, targets, "temperature")
    assert np.ptp(found.scale_C) == 0
    assert not found.offset_C.any()
    tried = np.exp(np.linspace(-3, 0, 151))
    best = tried[int(np.argmin([log_loss(logits * scale, targets) for scale in tried]))]
    assert found.scale_C[0] == pytest.approx(best, rel=0.02)
    assert found.scale_C[0] == pytest.approx(1 / 3, rel=0.1)


def test_calibrated_confidence_is_accuracy() -> None:
    logits, targets = made()
    right = logits.argmax(1) == targets.argmax(1)
    before = none(4).probabilities(logits).max(1)
    after = cross_fitted(logits, targets, np.arange(len(logits)) % 5, "temperature").max(1)
    assert expected_error(before, right) > 0.15
    assert expected_error(after, right) < 0.04


def test_platt_moves_each_label_for_itself() -> None:
    """Labels drawn with sigmoid(2 x + 1) and sigmoid(x / 2 - 1): the two pairs come back."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(20_000, 2)) * 2
    chance = 1 / (1 + np.exp(-(logits * [2, 0.5] + [1, -1])))
    found = fit(logits, random.random(chance.shape) < chance, "platt", is_multi_label=True)
    np.testing.assert_allclose(found.scale_C, [2, 0.5], rtol=0.1)
    np.testing.assert_allclose(found.offset_C, [1, -1], atol=0.1)


def test_all_right_is_sure_but_not_infinitely() -> None:
    """Ten rows, all right: with Platt's blur of 1/12 over two classes the best confidence is 1 - 1/24."""
    logits = np.array([[1.0, 0.0], [0.0, 1.0]] * 5)
    found = fit(logits, np.eye(2, dtype=bool)[[0, 1] * 5])
    assert found.probabilities(logits).max(1) == pytest.approx([23 / 24] * 10, abs=1e-4)


def test_error_and_bins_by_hand() -> None:
    assert expected_error([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0]) == pytest.approx(0.15)
    assert np.isnan(expected_error([], []))
    bins = reliability([0.0, 0.05, 0.5, 1.0], [0, 1, 1, 1], num_bins=10)
    assert [(each.count, each.accuracy) for each in bins] == [(2, 0.5), (1, 1.0), (1, 1.0)]
    with pytest.raises(InputError, match="2 confidences and 1 answers"):
        reliability([0.1, 0.2], [1])


def test_threshold_for_accuracy() -> None:
    confidence = np.array([0.9, 0.8, 0.6, 0.6, 0.5])
    right = np.array([True, True, False, True, True])
    assert threshold_for_accuracy(confidence, right, 0.9) == 0.8
    assert threshold_for_accuracy(confidence, right, 0.8) == 0.5  # all five: 4 of 5
    assert threshold_for_accuracy(confidence, right, 0.75) == 0.5
    assert threshold_for_accuracy(confidence[::-1], ~right[::-1], 0.9) == 0.6  # never reached: the best there is


def test_threshold_against_others() -> None:
    confidence, right = np.array([0.9, 0.8, 0.7, 0.3]), np.array([True, True, True, False])
    assert threshold_against(confidence, right, np.array([0.2, 0.5])) == pytest.approx(0.5, abs=1e-9)
    assert threshold_against(confidence, right, np.array([0.95])) == pytest.approx(0.95)  # one against three quarters
    assert threshold_against(confidence, right, np.array([0.1])) == pytest.approx(0.1, abs=1e-9)


def test_unknown_method() -> None:
    with pytest.raises(InputError, match="Unknown calibration 'isotonic'"):
        fit(np.zeros((2, 2)), np.eye(2, dtype=bool), "isotonic")
