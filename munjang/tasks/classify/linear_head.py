"""A linear head on vectors: logistic regression, for one label a text or several.    N rows, D dimension, C classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from munjang.types import Bools, Doubles, Floats, Ints
from munjang.vectors import logistic

MAX_FOLDED = 10_000  # rows; of more, one fold alone tells enough
NO_FOLD = -1  # the fold of rows that are always learned from


@dataclass(frozen=True)
class Head:
    """Logits are vectors times `weights_CD` plus `bias_C`."""

    weights_CD: Floats
    bias_C: Floats

    def logits(self, vectors_ND: Floats) -> Doubles:
        """Return the score of each class."""
        return (vectors_ND @ self.weights_CD.T + self.bias_C).astype(np.float64)


def fit(
    vectors_ND: Floats,
    targets_NC: Bools,
    cost: float = 1.0,
    is_multi_label: bool = False,
    start: Head | None = None,
) -> Head:
    """Fit scikit-learn's logistic regression: one over all classes, or one for each where a row may have several.

    `start` is a head for another cost, from which it is reached sooner.
    """
    if not is_multi_label:
        return _one_of_all(vectors_ND, targets_NC.argmax(1), cost, start)
    rows = [_yes_or_no(vectors_ND, target_N, cost) for target_N in targets_NC.T]
    return Head(np.stack([weights for weights, _ in rows]), np.array([bias for _, bias in rows], np.float32))


def fold_rows(targets_NC: Bools, num_folds: int, seed: int = 0) -> Ints:
    """Choose the fold in which each row is held out, every class spread evenly; NO_FOLD for the only row of a class.

    A row of several labels is counted as one of its rarest.
    """
    counts_C = targets_NC.sum(0)
    rarest_N = np.where(targets_NC, counts_C, len(targets_NC) + 1).argmin(1)
    rarest_N[~targets_NC.any(1)] = targets_NC.shape[1]  # rows without labels are a class of their own here
    shuffled = np.random.default_rng(seed).permutation(len(targets_NC))
    fold_N = np.full(len(targets_NC), NO_FOLD)
    start = 0  # the next class begins where the last one ended, so that folds are of one size
    for number in np.unique(rarest_N):
        rows = shuffled[rarest_N[shuffled] == number]
        if len(rows) > 1:
            fold_N[rows] = (start + np.arange(len(rows))) % num_folds
            start += len(rows)
    if len(fold_N) > MAX_FOLDED:
        fold_N[fold_N > 0] = NO_FOLD
    return fold_N


def held_out_logits(
    vectors_ND: Floats, targets_NC: Bools, fold_N: Ints, costs: Sequence[float], is_multi_label: bool = False
) -> dict[float, Doubles]:
    """Return for each cost the logits by heads that have not seen the rows; NaN for rows that are never held out."""
    found = {cost: np.full(targets_NC.shape, np.nan) for cost in costs}
    for fold in np.unique(fold_N[fold_N != NO_FOLD]):
        held_N = fold_N == fold
        head: Head | None = None
        for cost in costs:
            head = fit(vectors_ND[~held_N], targets_NC[~held_N], cost, is_multi_label, head)
            found[cost][held_N] = head.logits(vectors_ND[held_N])
    return found


def best_cost(logits: dict[float, Doubles], targets_NC: Bools, is_multi_label: bool = False) -> float:
    """Return the cost whose held-out logits give the most right answers; the lowest of equally good ones."""
    right = {cost: right_answers(each, targets_NC, is_multi_label) for cost, each in logits.items()}
    return max(right, key=lambda cost: (right[cost], -cost))


def right_answers(logits_NC: Doubles, targets_NC: Bools, is_multi_label: bool = False) -> int:
    """Count rows of the right class; with several labels a row, labels that are rightly given or left out."""
    known = ~np.isnan(logits_NC).any(1)
    if is_multi_label:
        return int(np.sum((logits_NC[known] > 0) == targets_NC[known]))
    return int(np.sum(logits_NC[known].argmax(1) == targets_NC[known].argmax(1)))


def _one_of_all(vectors_ND: Floats, labels_N: Ints, cost: float, start: Head | None) -> Head:
    begin: logistic.Classifier | None = None
    if start is not None:  # of two classes only the second one's row is learned
        first = 1 if len(start.bias_C) == 2 else 0
        weights_CD, bias_C = torch.from_numpy(start.weights_CD[first:]), torch.from_numpy(start.bias_C[first:])
        begin = logistic.Classifier(weights_CD, bias_C, np.arange(len(start.bias_C)))
    found = logistic.fit(vectors_ND, labels_N, cost, start=begin)
    weights, bias = found.weights_CD.numpy(), found.bias_C.numpy()
    if len(weights) > 1:
        return Head(weights, bias)
    return Head(np.concatenate([0 * weights, weights]), np.concatenate([0 * bias, bias]))  # the first one's logit is 0


def _yes_or_no(vectors_ND: Floats, target_N: Bools, cost: float) -> tuple[Floats, float]:
    if target_N.all() or not target_N.any():  # nothing tells yes from no: how often it was, as if half a row more
        frequency = (target_N.sum() + 0.5) / (len(target_N) + 1)
        return np.zeros(vectors_ND.shape[1], np.float32), float(np.log(frequency / (1 - frequency)))
    found = logistic.fit(vectors_ND, target_N.astype(np.int64), cost)
    return found.weights_CD[0].numpy(), float(found.bias_C[0])
