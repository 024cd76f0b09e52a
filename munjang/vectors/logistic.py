"""Logistic regression by L-BFGS, a probe of frozen vectors.    N rows, D dimension, C classes.

The loss is scikit-learn's: the sum of the rows' losses times `cost`, plus half the squared weights; the bias is free.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from munjang.errors import InputError
from munjang.types import Bools, Doubles, Floats, Ints

COSTS = tuple(2.0**power for power in range(-2, 4))  # the costs of SentEval
NUM_FOLDS = 5
MAX_ROWS_FOR_ALL_FOLDS = 10_000  # with more rows one fold is enough to choose a cost


@dataclass(frozen=True)
class Classifier:
    """The weights of a trained probe; two classes share one row."""

    weights_CD: Tensor
    bias_C: Tensor
    classes: Ints  # the class of each row of the weights

    def predict(self, vectors_ND: Floats | Doubles) -> Ints:
        """Return the most probable class of each row."""
        logits = _logits(torch.from_numpy(vectors_ND).to(self.weights_CD), self.weights_CD, self.bias_C)
        return np.asarray(self.classes[logits.argmax(1).numpy()], np.int64)


def fit(
    vectors_ND: Floats | Doubles,
    labels_N: Ints,
    cost: float = 1.0,
    max_rounds: int = 100,
    start: Classifier | None = None,
) -> Classifier:
    """Train on vectors, in their own precision; `start` are initial weights, which save rounds."""
    classes, targets = np.unique(labels_N, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"A classifier needs rows of two classes or more, not of {len(classes)}.")
    vectors, target_N = torch.from_numpy(vectors_ND), torch.from_numpy(targets)
    num_rows = 1 if len(classes) == 2 else len(classes)
    weights = vectors.new_zeros(num_rows, vectors.shape[1]) if start is None else start.weights_CD.clone()
    bias = vectors.new_zeros(num_rows) if start is None else start.bias_C.clone()
    parameters = [weights.requires_grad_(), bias.requires_grad_()]
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=max_rounds, history_size=10, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )
    decay = 1 / (2 * cost * len(target_N))

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = cross_entropy(_logits(vectors, weights, bias), target_N) + decay * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return Classifier(weights.detach(), bias.detach(), classes)


def fit_best(
    vectors_ND: Floats, labels_N: Ints, costs: Sequence[float] = COSTS, seed: int = 0
) -> tuple[Classifier, float]:
    """Choose the cost by cross-validation on the training rows, as SentEval does, and train on all of them with it.

    The only row of a class is never held out.
    """
    if len(costs) > 1 and np.unique(labels_N, return_counts=True)[1].max() < 2:
        costs = (1.0,)  # nothing can be held out
    if len(costs) == 1:
        return fit(vectors_ND, labels_N, costs[0]), costs[0]
    num_right = np.zeros(len(costs))
    for is_held in _folds(labels_N, seed):
        model: Classifier | None = None
        for index, cost in enumerate(costs):
            model = fit(vectors_ND[~is_held], labels_N[~is_held], cost, start=model)
            num_right[index] += float(np.sum(model.predict(vectors_ND[is_held]) == labels_N[is_held]))
    cost = costs[int(np.argmax(num_right))]
    return fit(vectors_ND, labels_N, cost), cost


def _folds(labels_N: Ints, seed: int) -> Iterator[Bools]:
    """Yield which rows are held out, fold by fold; every class is spread over the folds evenly.

    The only row of a class is in no fold.
    """
    random = np.random.default_rng(seed)
    shuffled = random.permutation(len(labels_N))
    by_class = shuffled[np.argsort(labels_N[shuffled], kind="stable")]
    _, class_N, sizes = np.unique(labels_N, return_inverse=True, return_counts=True)
    num_folds = min(NUM_FOLDS, int(sizes.max()))
    fold_N = np.full(len(labels_N), -1, np.int64)
    spread = by_class[sizes[class_N[by_class]] > 1]
    fold_N[spread] = np.arange(len(spread)) % num_folds
    for fold in range(num_folds if len(labels_N) <= MAX_ROWS_FOR_ALL_FOLDS else 1):
        yield fold_N == fold


def _logits(vectors: Tensor, weights_CD: Tensor, bias_C: Tensor) -> Tensor:
    logits = vectors @ weights_CD.T + bias_C
    return torch.cat([torch.zeros_like(logits), logits], 1) if len(weights_CD) == 1 else logits
