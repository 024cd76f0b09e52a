"""Natural language inference: a cross-encoder's own labels, or a classifier on a bi-encoder's vectors.

A bi-encoder drops the softmax head that it was trained with, so a new one is trained, on (u, v, |u - v|) as in the
Sentence-BERT paper, from the rows of `train`.
"""

from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Kind, Measured, Settings, Source, encode_columns, kind_of
from munjang.evaluation.kinds.probe import Split, measure_probe, read_split
from munjang.evaluation.metrics.bootstrap import mean_of
from munjang.evaluation.metrics.classification import accuracy, macro_f1
from munjang.types import Floats, Ints


def read(source: Source, settings: Settings) -> Split:
    """Read premises, hypotheses and labels."""
    return read_split(source, settings, 2)


def evaluate(model: Any, data: Split, settings: Settings) -> Measured:
    """Measure accuracy and macro F1."""
    if kind_of(model) == "cross":
        return _of_cross(model, data.test, settings)
    assert data.train is not None  # see check_model
    columns = encode_columns(model, (*data.train.texts, *data.test.texts), settings)
    features, what = (_symmetric, "(|u - v|, u * v)") if data.is_symmetric else (_features, "(u, v, |u - v|)")
    train_ND, test_ND = features(*columns[:2]), features(*columns[2:])
    return measure_probe(train_ND, test_ND, data.train, data.test, settings.seed, what)


def _features(u_ND: Floats, v_ND: Floats) -> Floats:
    return np.concatenate([u_ND, v_ND, np.abs(u_ND - v_ND)], axis=1)


def _symmetric(u_ND: Floats, v_ND: Floats) -> Floats:
    """Return the features of SentEval's MRPC."""
    return np.concatenate([np.abs(u_ND - v_ND), u_ND * v_ND], axis=1)


def _of_cross(model: Any, examples: Examples, settings: Settings) -> Measured:
    if model.num_labels < 2:
        raise InputError("nli needs a cross-encoder with a score for each label, and this one has a single score.")
    place_of = _outputs(model, examples, settings)
    pairs = list(zip(*examples.texts, strict=True))
    scores = model.predict(pairs, activation="Identity", prompt=settings.prompt, progress=settings.progress)
    predicted, labels = scores.argmax(1), place_of[examples.labels]
    return Measured(
        {"accuracy": accuracy(predicted, labels), "macro_f1": macro_f1(predicted, labels)},
        sample=mean_of(predicted == labels),
    )


def _outputs(model: Any, examples: Examples, settings: Settings) -> Ints:
    """Find the model's output for each label of the file."""
    stated = model.model.config.get("id2label") or {}
    own = [str(stated.get(str(place), stated.get(place, ""))).lower() for place in range(model.num_labels)]
    names = [name.strip().lower() for name in examples.label_names]
    if settings.labels is None and names and all(name in own for name in names):
        return np.array([own.index(name) for name in names], np.int64)
    numbers = [int(name) for name in names if name.isdigit()]
    if settings.labels is None and len(numbers) == len(names) and max(numbers, default=0) < model.num_labels:
        return np.array(numbers or range(model.num_labels), np.int64)
    if settings.labels is None or len(settings.labels) != model.num_labels:
        raise InputError(
            f"The model's {model.num_labels} outputs are called {', '.join(own)}, the file's labels "
            f"{', '.join(names)}; name the outputs in their order with --labels (labels=)."
        )
    wanted = [name.strip().lower() for name in settings.labels]
    return np.array([wanted.index(name) for name in names] if names else range(len(wanted)), np.int64)


KIND = Kind(
    "natural language inference: premise, hypothesis and label",
    {"bi": "accuracy", "cross": "accuracy"},
    read,
    evaluate,
    lambda contents: contents.num_texts == 2 and not contents.has_scores and contents.num_classes == 3,
)
