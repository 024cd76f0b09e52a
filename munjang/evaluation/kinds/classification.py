"""Classification of texts: logistic regression on frozen vectors, as SentEval does it."""

from typing import Any

from munjang.errors import InputError
from munjang.evaluation.kinds.base import Contents, Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.probe import Split, measure_probe, read_split


def read(source: Source, settings: Settings) -> Split:
    """Read texts and their classes; the classifier is trained on the rows of `train`."""
    if settings.train is None:
        raise InputError("classification trains a classifier on the vectors: give its rows with --train (train=).")
    return read_split(source, settings, 1)


def evaluate(model: Any, data: Split, settings: Settings) -> Measured:
    """Measure accuracy and macro F1 of the classifier."""
    assert data.train is not None
    train_ND, test_ND = encode_columns(model, (data.train.texts[0], data.test.texts[0]), settings)
    return measure_probe(train_ND, test_ND, data.train, data.test, settings.seed, "the vectors")


def fits(contents: Contents) -> bool:
    """Recognise a text and its class."""
    return contents.num_texts == 1 and contents.has_labels


KIND = Kind("classification: a text and its class, and rows to train on", {"bi": "accuracy"}, read, evaluate, fits)
