"""Train a classifier on frozen vectors of one set of rows, and measure it on another."""

import os
from dataclasses import dataclass, replace

import numpy as np

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Measured, Settings, Source
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.bootstrap import mean_of
from munjang.evaluation.metrics.classification import accuracy, macro_f1
from munjang.types import Floats, Ints

MIN_CLASS_ROWS = 5  # fewer are said
MAX_LISTED_CLASSES = 6
NUM_FOLDS = 10  # SentEval's, for sets without a split


@dataclass(frozen=True)
class Split:
    """Rows to measure on, and rows to train on where they are given."""

    test: Examples
    train: Examples | None
    is_symmetric: bool = False  # of pairs whose order says nothing
    folds: int | None = None  # of cross-validation, instead of rows to train on

    def __len__(self) -> int:
        return len(self.test)

    @property
    def name(self) -> str:
        """The dataset's: that of the rows to measure on."""
        return self.test.name

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the reader said of both sets of rows."""
        notes = (*self.test.notes, *few_rows(self.test, "test", "so that their part of macro F1 is mostly chance"))
        if self.train is None:
            return notes
        name = os.path.basename(self.train.name)
        few = few_rows(self.train, "training", "which can hardly be learned")
        return (*notes, *(f"{name}: {note}" for note in self.train.notes), *few)


def read_split(source: Source, settings: Settings, num_texts: int) -> Split:
    """Read both sets of rows, so that a bad one is found before a model is loaded."""
    test = read_rows(source, settings, (num_texts, num_texts), "labels")
    if settings.train is None:
        return Split(test, None, folds=settings.folds)
    train = read_rows(settings.train, replace(settings, max_rows=None, split="train"), (num_texts, num_texts), "labels")
    same_classes(train, test)  # or refused
    if settings.max_train_rows is not None and settings.max_train_rows < len(train):
        drawn = np.random.default_rng(settings.seed).choice(len(train), settings.max_train_rows, replace=False)
        train = train.take(np.sort(drawn))
    return Split(test, train)


def same_classes(train: Examples, test: Examples) -> tuple[Ints, Ints]:
    """Return the labels of both with common numbers: two files may number their classes differently."""
    assert train.labels is not None
    assert test.labels is not None
    if not (train.label_names and test.label_names):
        return train.labels, test.labels
    names = {name: number for number, name in enumerate(train.label_names)}
    strange = [name for name in test.label_names if name not in names]
    numbers = np.array([names.get(name, -1) for name in test.label_names], np.int64)
    if len(strange) == len(test.label_names):
        raise InputError(f"{test.name} has none of the classes of {train.name}: {', '.join(strange[:6])}.")
    return train.labels, numbers[test.labels]


def few_rows(examples: Examples, role: str, consequence: str) -> list[str]:
    """Say which classes have too few rows to be learned or measured."""
    assert examples.labels is not None
    counts = np.bincount(examples.labels, minlength=len(examples.label_names))
    names = examples.label_names or tuple(map(str, range(len(counts))))
    few = [f"{name} ({count:,})" for name, count in zip(names, counts, strict=False) if 0 < count < MIN_CLASS_ROWS]
    if not few:
        return []
    listed = ", ".join(few[:MAX_LISTED_CLASSES]) + (
        f" and {len(few) - MAX_LISTED_CLASSES} more" * (len(few) > MAX_LISTED_CLASSES)
    )
    return [f"classes with fewer than {MIN_CLASS_ROWS} {role} rows, {consequence}: {listed}"]


def measure_probe(train_ND: Floats, test_ND: Floats, train: Examples, test: Examples, seed: int, what: str) -> Measured:
    """Train on one set and measure on the other."""
    from munjang.vectors.logistic import fit_best

    train_labels, test_labels = same_classes(train, test)
    classifier, cost = fit_best(train_ND, train_labels, seed=seed)
    predicted = classifier.predict(test_ND)
    rows = f"{len(train):,} rows of {os.path.basename(train.name)}"
    notes = [f"logistic regression on {what}, trained on {rows}, cost {cost:g}"]
    num_strange = int(np.sum(~np.isin(test_labels, train_labels)))
    if num_strange:
        notes.append(f"{num_strange:,} rows are of classes without a training row and count as wrong")
    metrics = {"accuracy": accuracy(predicted, test_labels), "macro_f1": macro_f1(predicted, test_labels)}
    return Measured(metrics, tuple(notes), mean_of(predicted == test_labels))


def measure_folds(vectors_ND: Floats, examples: Examples, seed: int, what: str, num_folds: int) -> Measured:
    """Hold out each part of the rows once, and train on the others; the cost is chosen anew without the part."""
    from munjang.vectors.logistic import fit_best

    labels = examples.labels
    assert labels is not None
    if not 2 <= num_folds <= len(examples):
        raise InputError(f"{examples.name}: folds must be between 2 and the {len(examples):,} rows, not {num_folds}.")
    shuffled = np.random.default_rng(seed).permutation(len(examples))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold_N = np.empty(len(examples), np.int64)
    fold_N[by_class] = np.arange(len(examples)) % num_folds
    predicted, costs = np.empty_like(labels), []
    for fold in range(num_folds):
        is_held = fold_N == fold
        classifier, cost = fit_best(vectors_ND[~is_held], labels[~is_held], seed=seed)
        predicted[is_held] = classifier.predict(vectors_ND[is_held])
        costs.append(cost)
    spread = f"{min(costs):g}" if min(costs) == max(costs) else f"{min(costs):g} to {max(costs):g}"
    note = f"logistic regression on {what}, {num_folds}-fold cross-validation, cost {spread}"
    metrics = {"accuracy": accuracy(predicted, labels), "macro_f1": macro_f1(predicted, labels)}
    return Measured(metrics, (note,), mean_of(predicted == labels))
