"""Measure a classifier's probabilities on rows whose labels are known.    N rows, C classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.evaluation.metrics.classification import macro_f1
from munjang.tasks.classify import calibration
from munjang.tasks.classify.targets import Label
from munjang.types import Bools, Doubles


def confidences(probabilities_NC: Doubles, has_NC: Bools, is_multi_label: bool) -> tuple[Doubles, Bools]:
    """Return the confidence of each answer and whether it is right; of several labels a row, each is an answer."""
    if is_multi_label:
        return probabilities_NC.ravel(), has_NC.ravel()
    return probabilities_NC.max(1), np.take_along_axis(has_NC, probabilities_NC.argmax(1)[:, None], 1)[:, 0]


def measure(
    probabilities_NC: Doubles, has_NC: Bools, is_multi_label: bool = False, threshold: float = 0.0
) -> dict[str, Any]:
    """Measure accuracy of the most probable labels and of the answers from `threshold` on, calibration, confusion.

    A row that has no label of these is never right. With several labels a row, it is right where all of them are.
    """
    sure, right = confidences(probabilities_NC, has_NC, is_multi_label)
    found: dict[str, Any] = {
        "calibration_error": calibration.expected_error(sure, right),
        "reliability": as_rows(calibration.reliability(sure, right)),
        "threshold": threshold,
    }
    if is_multi_label:
        yes_NC = probabilities_NC >= threshold
        found["micro_f1"] = float(2 * (yes_NC & has_NC).sum() / max(yes_NC.sum() + has_NC.sum(), 1))
        found["accuracy"] = float((yes_NC == has_NC).all(1).mean())
        return found
    predicted_N, is_known_N = probabilities_NC.argmax(1), has_NC.any(1)
    labels_N = np.where(is_known_N, has_NC.argmax(1), -1)
    is_answered_N = sure >= threshold
    found["accuracy"] = float(right.mean())
    found["macro_f1"] = macro_f1(predicted_N, labels_N)
    found["answered"] = float(is_answered_N.mean())
    found["answered_accuracy"] = float(right[is_answered_N].mean()) if is_answered_N.any() else None
    confusion_CC = np.zeros((has_NC.shape[1],) * 2, np.int64)
    np.add.at(confusion_CC, (labels_N[is_known_N], predicted_N[is_known_N]), 1)
    found["confusion"] = confusion_CC.tolist()
    return found


def truth_table(labels: Sequence[Label], truth: Sequence[Any]) -> Bools:
    """Return which of the labels each row has, by name: 3 and "3" are equal, as a .csv has only texts."""
    place = {str(label): at for at, label in enumerate(labels)}
    has_NC = np.zeros((len(truth), len(labels)), bool)
    for row, value in enumerate(truth):
        for name in value if isinstance(value, (list, tuple, set)) else [value]:
            if str(name).strip() in place:
                has_NC[row, place[str(name).strip()]] = True
    return has_NC


def as_rows(bins: Sequence[calibration.Bin]) -> list[list[float]]:
    """Turn bins into records for JSON."""
    return [[each.count, each.confidence, each.accuracy] for each in bins]
