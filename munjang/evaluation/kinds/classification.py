"""Classification of texts: logistic regression on frozen vectors, as SentEval does it."""

import os
from dataclasses import replace
from typing import Any

from munjang.data.published import PUBLISHED, shape_of
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Contents, Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.probe import Split, measure_folds, measure_probe, read_split


def read(source: Source, settings: Settings) -> Split:
    """Read texts and their classes; the classifier is trained on the rows of `train`, or on the other folds."""
    folds = settings.folds
    if folds is None and settings.train is None and isinstance(source, (str, os.PathLike)):
        name = shape_of(source)
        folds = None if name is None else PUBLISHED[name].folds
    if settings.train is None and folds is None:
        raise InputError(
            "classification trains a classifier on the vectors: give its rows with --train (train=), or --folds 10 "
            "(folds=) to hold out a tenth of the rows at a time."
        )
    if settings.train is not None and settings.folds is not None:
        raise InputError("--folds (folds=) is for data without rows to train on; drop it, or --train (train=).")
    return read_split(source, replace(settings, folds=folds), 1)


def evaluate(model: Any, data: Split, settings: Settings) -> Measured:
    """Measure accuracy and macro F1 of the classifier."""
    if data.train is None:
        assert data.folds is not None
        (vectors_ND,) = encode_columns(model, data.test.texts, settings)
        return measure_folds(vectors_ND, data.test, settings.seed, "the vectors", data.folds)
    train_ND, test_ND = encode_columns(model, (data.train.texts[0], data.test.texts[0]), settings)
    return measure_probe(train_ND, test_ND, data.train, data.test, settings.seed, "the vectors")


def fits(contents: Contents) -> bool:
    """Recognise a text and its class."""
    return contents.num_texts == 1 and contents.has_labels


KIND = Kind("classification: a text and its class, and rows to train on", {"bi": "accuracy"}, read, evaluate, fits)
