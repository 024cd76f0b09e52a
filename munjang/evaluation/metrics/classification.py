"""Metrics of classes, and of scores for a yes-or-no question.    N rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import InputError
from munjang.types import Bools, Doubles


@dataclass(frozen=True)
class Best:
    """A threshold and what it gives: yes means a score of at least `threshold`."""

    threshold: float
    value: float  # of what was made best
    precision: float
    recall: float


def accuracy(predicted_N: ArrayLike, labels_N: ArrayLike) -> float:
    """Return the fraction that is right; NaN for no rows."""
    predicted, labels = _same(predicted_N, labels_N)
    return float(np.mean(predicted == labels)) if len(labels) else float("nan")


def f1(predicted_N: ArrayLike, labels_N: ArrayLike, label: int = 1) -> float:
    """Return the harmonic mean of precision and recall of one class; 0 where it is neither predicted nor there."""
    predicted, labels = _same(predicted_N, labels_N)
    right = int(np.sum((predicted == label) & (labels == label)))
    total = int(np.sum(predicted == label)) + int(np.sum(labels == label))
    return 2 * right / total if total else 0.0


def macro_f1(predicted_N: ArrayLike, labels_N: ArrayLike) -> float:
    """Return the mean F1 of every class that is predicted or there."""
    predicted, labels = _same(predicted_N, labels_N)
    classes = np.union1d(predicted, labels)
    return float(np.mean([f1(predicted, labels, each) for each in classes])) if len(classes) else float("nan")


def average_precision(scores_N: ArrayLike, positive_N: ArrayLike, num_positive: int | None = None) -> float:
    """Sum precision times the gain in recall, from the highest threshold to the lowest; equal scores are one step.

    `num_positive` is the number of positives where some of them have no score and count as missed. NaN without any.
    """
    _, found, taken = _steps(scores_N, positive_N)
    total = int(np.asarray(positive_N).sum()) if num_positive is None else num_positive
    if total == 0:
        return float("nan")
    return float(np.sum(np.diff(found, prepend=0) * found / taken) / total)


def best_f1(scores_N: ArrayLike, positive_N: ArrayLike, num_positive: int | None = None) -> Best:
    """Return the threshold with the best F1; the highest of equally good ones."""
    scores, found, taken = _steps(scores_N, positive_N)
    total = int(np.asarray(positive_N).sum()) if num_positive is None else num_positive
    if total == 0 or not len(scores):
        return Best(float("nan"), float("nan"), float("nan"), float("nan"))
    values = 2 * found / (taken + total)
    place = int(np.argmax(values))
    return _best(scores, place, float(values[place]), found, taken, total)


def best_accuracy(scores_N: ArrayLike, positive_N: ArrayLike) -> Best:
    """Return the threshold with the best accuracy; the highest of equally good ones."""
    scores, found, taken = _steps(scores_N, positive_N)
    num_rows, total = len(np.asarray(positive_N)), int(np.asarray(positive_N).sum())
    if not num_rows:
        return Best(float("nan"), float("nan"), float("nan"), float("nan"))
    values = (found + (num_rows - total) - (taken - found)) / num_rows
    place, of_none = int(np.argmax(values)), (num_rows - total) / num_rows
    if of_none > values[place]:  # to say no to everything is better still
        return Best(float(np.nextafter(scores[0], np.inf)), of_none, 0.0, 0.0)
    return _best(scores, place, float(values[place]), found, taken, total)


def _best(scores: Doubles, place: int, value: float, found: Doubles, taken: Doubles, total: int) -> Best:
    threshold = float(scores[place])
    if place + 1 < len(scores):  # half-way to the first that is refused
        middle = (threshold + float(scores[place + 1])) / 2
        threshold = middle if middle > scores[place + 1] else threshold
    recall = found[place] / total if total else 0.0
    return Best(threshold, value, float(found[place] / taken[place]), float(recall))


def _steps(scores_N: ArrayLike, positive_N: ArrayLike) -> tuple[Doubles, Doubles, Doubles]:
    """Return distinct scores from the highest, positives at or above each, and all rows at or above each."""
    scores, positive = _same(np.asarray(scores_N, np.float64), np.asarray(positive_N, bool))
    if not np.isfinite(scores).all():
        raise InputError("Scores must be finite numbers; there is NaN or infinity among them.")
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(positive[order], dtype=np.float64)
    ends: Bools = np.append(scores[1:] != scores[:-1], len(scores) > 0)[: len(scores)]
    return scores[ends], hits[ends], (np.flatnonzero(ends) + 1).astype(np.float64)


def _same(first_N: ArrayLike, second_N: ArrayLike) -> tuple[Doubles, Doubles]:
    first, second = np.asarray(first_N), np.asarray(second_N)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"Two rows of equal length are needed, not {first.shape} and {second.shape}.")
    return first, second
