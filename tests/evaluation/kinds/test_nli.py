"""NLI: a cross-encoder's own labels; a bi-encoder needs rows to train a classifier on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from tests.texts import ENGLISH, KOREAN

NAMES = ("contradiction", "entailment", "neutral")
PREMISES, HYPOTHESES = [*ENGLISH[:9], *KOREAN[:9]], [*ENGLISH[5:14], *KOREAN[5:14]]
LABELS = np.arange(18) % 3
EXAMPLES = Examples("nli", (PREMISES, HYPOTHESES), labels=LABELS, label_names=NAMES)


def test_cross_encoder_in_the_order_of_its_outputs(cross_nli: CrossEncoder) -> None:
    outputs = cross_nli.predict(list(zip(PREMISES, HYPOTHESES, strict=True))).argmax(1)
    order = ("neutral", "contradiction", "entailment")
    expected = np.mean([order[output] == NAMES[label] for output, label in zip(outputs, LABELS, strict=True)])
    report = evaluate(cross_nli, EXAMPLES, labels=order)
    assert (report.kind, report.main) == ("nli", "accuracy")
    assert report.score == pytest.approx(expected)
    cross_nli.model.config["id2label"] = dict(enumerate(name.upper() for name in order))
    assert evaluate(cross_nli, EXAMPLES).score == pytest.approx(expected)
    cross_nli.model.config["id2label"] = {str(place): f"LABEL_{place}" for place in range(3)}


def test_unknown_outputs_are_asked_for(cross_nli: CrossEncoder, cross: CrossEncoder) -> None:
    with pytest.raises(InputError, match=r"outputs are called label_0.*name the outputs in their order with --labels"):
        evaluate(cross_nli, EXAMPLES)
    with pytest.raises(InputError, match="has a single score"):
        evaluate(cross, EXAMPLES)


def test_numbered_labels_are_the_outputs(cross_nli: CrossEncoder) -> None:
    outputs = cross_nli.predict(list(zip(PREMISES, HYPOTHESES, strict=True))).argmax(1)
    numbered = Examples("nli", (PREMISES, HYPOTHESES), labels=LABELS, label_names=("0", "1", "2"))
    assert evaluate(cross_nli, numbered).score == pytest.approx(np.mean(outputs == LABELS))


def test_bi_encoder_trains_a_classifier(model: BiEncoder, write: Callable[..., Path]) -> None:
    rows = zip(PREMISES, HYPOTHESES, LABELS, strict=True)
    train = write("train.tsv", "premise\thypothesis\tlabel", *(f"{a}\t{b}\t{NAMES[label]}" for a, b, label in rows))
    report = evaluate(model, EXAMPLES, train=train)
    u, v = model.encode(PREMISES), model.encode(HYPOTHESES)
    features = np.concatenate([u, v, np.abs(u - v)], 1)
    cost = float(next(note for note in report.notes if "(u, v, |u - v|)" in note).rpartition(" ")[2])
    theirs = sklearn.linear_model.LogisticRegression(C=cost, max_iter=1000).fit(features, LABELS)
    assert report.score == pytest.approx(theirs.score(features, LABELS), abs=1 / 18)


def test_bi_encoder_without_training_rows_is_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="--train"):
        evaluate(model, EXAMPLES)
