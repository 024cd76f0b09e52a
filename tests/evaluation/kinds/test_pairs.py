"""Pairs: scikit-learn's average precision of the model's own similarities."""

import numpy as np
import pytest
import sklearn.metrics

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from munjang.vectors.similarity import PAIRWISE
from tests.texts import ENGLISH

FIRST, SECOND = ENGLISH[:8], ENGLISH[8:16]
LABELS = np.array([1, 1, 0, 0, 0, 1, 0, 0])
PAIRS = Examples("pairs", (FIRST, SECOND), labels=LABELS)


def test_as_scikit_learn(model: BiEncoder, cross: CrossEncoder) -> None:
    report = evaluate(model, PAIRS)
    assert (report.kind, report.main) == ("pairs", "ap_cosine")
    for name, closeness in PAIRWISE.items():
        scores = closeness(model.encode(FIRST), model.encode(SECOND))
        expected = sklearn.metrics.average_precision_score(LABELS, scores)
        assert report.metrics[f"ap_{name}"] == pytest.approx(expected, abs=1e-6)
        predicted = scores >= report.metrics[f"f1_threshold_{name}"]
        assert sklearn.metrics.f1_score(LABELS, predicted) == pytest.approx(report.metrics[f"f1_{name}"])
    scores = cross.predict(list(zip(FIRST, SECOND, strict=True)))
    assert evaluate(cross, PAIRS).score == pytest.approx(sklearn.metrics.average_precision_score(LABELS, scores))


def test_the_name_of_the_label_tells_which_is_yes(model: BiEncoder) -> None:
    named = Examples("named", (FIRST, SECOND), labels=1 - LABELS, label_names=("duplicate", "other"))
    assert evaluate(model, named).metrics == evaluate(model, PAIRS).metrics


def test_no_positive_is_said(model: BiEncoder) -> None:
    report = evaluate(model, Examples("none", (FIRST, SECOND), labels=np.zeros(8, np.int64)))
    assert np.isnan(report.score)
    assert any("need a positive pair" in note for note in report.notes)


def test_refused(model: BiEncoder) -> None:
    three = Examples("three", (FIRST, SECOND), labels=np.arange(8) % 3, label_names=("a", "b", "c"))
    with pytest.raises(InputError, match="two classes, yes and no, and there are more: a, b, c"):
        evaluate(model, three, kind="pairs")
