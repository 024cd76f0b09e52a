"""Calibration: logits to probabilities that mean what they say, and when to say nothing.    N rows, C classes, B bins.

Everything here is fitted on rows that were held out: those that a classifier has learned from look easier than others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

from munjang.errors import InputError, unknown
from munjang.types import Bools, Doubles, Ints

NUM_BINS = 15  # what Guo et al. 2017 report the error with
MAX_LOG_SCALE = 8.0  # a temperature of 1/3000: probabilities are 0 and 1 long before


@dataclass(frozen=True)
class Calibration:
    """Logits times `scale_C` plus `offset_C`, then softmax, or sigmoid where a row may have several labels."""

    scale_C: Doubles
    offset_C: Doubles

    def probabilities(self, logits_NC: ArrayLike, is_multi_label: bool = False) -> Doubles:
        """Return the probability of each class; rows sum to one, unless a row may have several labels."""
        logits = torch.from_numpy(np.asarray(logits_NC, np.float64) * self.scale_C + self.offset_C)
        return (logits.sigmoid() if is_multi_label else logits.softmax(1)).numpy()


@dataclass(frozen=True)
class Bin:
    """Rows of about the same confidence, and how many of them are right."""

    count: int
    confidence: float
    accuracy: float


def none(num_classes: int) -> Calibration:
    """Return a calibration that leaves the logits as they are."""
    return Calibration(np.ones(num_classes), np.zeros(num_classes))


def fit(
    logits_NC: ArrayLike, targets_NC: Bools, method: str = "temperature", is_multi_label: bool = False
) -> Calibration:
    """Fit the calibration with the least log loss on these rows; methods: none, temperature, platt.

    `fit(logits_of_held_out_rows, targets, "temperature").scale_C[0]` is 1 / temperature.
    """
    logits, targets = np.asarray(logits_NC, np.float64), np.asarray(targets_NC, np.float64)
    if method not in METHODS:
        raise unknown("calibration", method, METHODS)
    num_rows, num_classes = logits.shape
    if method == "none" or not num_rows:
        return none(num_classes)
    # Platt's remedy: were every held-out row right, the best temperature would be 0
    blur = 1 / (num_rows + 2)
    smooth = torch.from_numpy(targets * (1 - blur) + blur * (0.5 if is_multi_label else 1 / num_classes))
    given = torch.from_numpy(logits)
    log_scale, offset = (torch.zeros(size, dtype=torch.float64) for size in METHODS[method](num_classes))
    optimizer = torch.optim.LBFGS(
        [log_scale.requires_grad_(), offset.requires_grad_()], max_iter=200, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        bounded = log_scale.clamp(-MAX_LOG_SCALE, MAX_LOG_SCALE)
        moved = given * bounded.exp() + (offset if len(offset) else 0.0)
        value = _log_loss(moved, smooth, is_multi_label)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    scale = log_scale.detach().clamp(-MAX_LOG_SCALE, MAX_LOG_SCALE).exp().numpy()
    shift = offset.detach().numpy() if len(offset) else np.zeros(num_classes)
    return Calibration(np.broadcast_to(scale, num_classes).copy(), shift)


def cross_fitted(
    logits_NC: Doubles, targets_NC: Bools, fold_N: Ints, method: str, is_multi_label: bool = False
) -> Doubles:
    """Return probabilities of rows by a calibration that has not seen their fold, to measure calibrations with."""
    found = np.empty(logits_NC.shape)
    for fold in np.unique(fold_N):
        here = fold_N == fold
        others = here if here.all() else ~here
        found[here] = fit(logits_NC[others], targets_NC[others], method, is_multi_label).probabilities(
            logits_NC[here], is_multi_label
        )
    return found


def reliability(confidence_N: ArrayLike, right_N: ArrayLike, num_bins: int = NUM_BINS) -> list[Bin]:
    """Sort rows into bins of equal size from confidence 0 to 1; leave out empty ones."""
    confidence, right = np.asarray(confidence_N, np.float64), np.asarray(right_N, np.float64)
    if confidence.shape != right.shape:
        raise InputError(f"{len(confidence)} confidences and {len(right)} answers; they go together row by row.")
    bin_N = np.minimum((confidence * num_bins).astype(np.int64), num_bins - 1)
    rows = [bin_N == place for place in np.unique(bin_N)]
    return [Bin(int(here.sum()), float(confidence[here].mean()), float(right[here].mean())) for here in rows]


def expected_error(confidence_N: ArrayLike, right_N: ArrayLike, num_bins: int = NUM_BINS) -> float:
    """Return the expected calibration error: the gap between confidence and accuracy, averaged over rows; NaN for none.

    >>> round(expected_error([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0]), 6)
    0.15
    """
    bins = reliability(confidence_N, right_N, num_bins)
    total = sum(each.count for each in bins)
    apart = sum(each.count * abs(each.confidence - each.accuracy) for each in bins)
    return apart / total if total else float("nan")


def threshold_for_accuracy(confidence_N: Doubles, right_N: Bools, min_accuracy: float) -> float:
    """Return the lowest threshold whose answers reach this accuracy, else the one with the most accurate answers.

    >>> threshold_for_accuracy(np.array([0.9, 0.8, 0.6, 0.5]), np.array([True, True, False, True]), 0.9)
    0.8
    """
    order = np.argsort(-confidence_N, kind="stable")
    sorted_N = confidence_N[order]
    accuracy_N = np.cumsum(right_N[order]) / np.arange(1, len(order) + 1)
    is_last_N = np.append(sorted_N[1:] < sorted_N[:-1], True)  # equal confidences are answered together
    places = np.flatnonzero(is_last_N & (accuracy_N >= min_accuracy))
    if not len(places):
        places = np.flatnonzero(is_last_N & (accuracy_N == accuracy_N[is_last_N].max()))
    return float(sorted_N[places[-1]])


def threshold_against(confidence_N: Doubles, right_N: Bools, others: Doubles) -> float:
    """Return the threshold that best keeps right answers and drops rows of no class, both counting the same."""
    candidates = np.unique(np.concatenate([[0.0], confidence_N, np.nextafter(others, 2.0)]))
    kept = (right_N.sum() - np.searchsorted(np.sort(confidence_N[right_N]), candidates)) / max(len(confidence_N), 1)
    dropped = np.searchsorted(np.sort(others), candidates) / max(len(others), 1)
    return float(candidates[int(np.argmax(kept + dropped))])


def _log_loss(logits: Tensor, targets: Tensor, is_multi_label: bool) -> Tensor:
    if is_multi_label:
        return binary_cross_entropy_with_logits(logits, targets)
    return -(targets * log_softmax(logits, 1)).sum(1).mean()


# How many scales and offsets are fitted to C classes. Platt's are a pair for each class, temperature is one for all.
METHODS: dict[str, Callable[[int], tuple[int, int]]] = {
    "none": lambda num_classes: (0, 0),
    "temperature": lambda num_classes: (1, 0),
    "platt": lambda num_classes: (num_classes, num_classes),
}
