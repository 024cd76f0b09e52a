"""Classification of texts: logistic regression on frozen vectors, as SentEval does it."""

from typing import Any

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.probe import measure_probe
from munjang.evaluation.kinds.rows import read_rows


def read(source: Source, settings: Settings) -> Examples:
    """A text and its class; the classifier is trained on the rows of `train`."""
    if settings.train is None:
        raise InputError("classification trains a classifier on the vectors: give its rows with --train (train=).")
    return read_rows(source, settings, (1, 1), "labels")


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Accuracy and macro F1 of the classifier."""
    assert settings.train is not None
    train = read_rows(settings.train, settings, (1, 1), "labels")
    train_ND, test_ND = encode_columns(model, (train.texts[0], examples.texts[0]), settings)
    return measure_probe(train_ND, test_ND, train, examples, settings.seed, "the vectors")


KIND = Kind("classification: a text and its class, and rows to train on", {"bi": "accuracy"}, read, evaluate)
