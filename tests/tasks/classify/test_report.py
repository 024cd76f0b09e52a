"""Measures on labelled rows, worked out by hand."""

import numpy as np
import pytest

from munjang.tasks.classify.report import measure, truth_table

PROBABILITIES = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])


def test_one_label_a_row() -> None:
    found = measure(PROBABILITIES, truth_table(["a", "b"], ["a", "b", "b", "elsewhere"]), threshold=0.7)
    assert found["accuracy"] == 0.5
    assert found["answered"] == 0.75
    assert found["answered_accuracy"] == pytest.approx(2 / 3)
    assert found["confusion"] == [[1, 0], [1, 1]]  # the row of another label has no place
    assert found["calibration_error"] == pytest.approx((0.1 + 0.6 + 0.2 + 0.7) / 4)


def test_several_labels_a_row() -> None:
    truth = truth_table([1, 2], [["1"], [1, 2], [], ["2"]])
    assert truth.tolist() == [[True, False], [True, True], [False, False], [False, True]]
    found = measure(PROBABILITIES, truth, is_multi_label=True, threshold=0.5)
    assert found["accuracy"] == 0.5
    assert found["micro_f1"] == pytest.approx(2 * 3 / (4 + 4))


def test_nothing_is_answered() -> None:
    assert measure(PROBABILITIES, truth_table(["a", "b"], ["a"] * 4), threshold=1.0)["answered_accuracy"] is None
