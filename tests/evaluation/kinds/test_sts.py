"""STS: scipy's correlation of the model's own similarities with the scores."""

import math

import numpy as np
import pytest
import scipy.stats

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from munjang.vectors.similarity import PAIRWISE
from tests.texts import ENGLISH, KOREAN

FIRST, SECOND = [*ENGLISH[:6], *KOREAN[:6]], [*ENGLISH[6:12], *KOREAN[6:12]]
SCORES = np.array([0, 0.2, 0.2, 0.4, 1, 0.6, 0.8, 0.1, 0.5, 0.5, 0.9, 0.3])
PAIRS = Examples("pairs", (FIRST, SECOND), scores=SCORES)


def test_as_scipy(model: BiEncoder) -> None:
    report = evaluate(model, PAIRS)
    assert (report.kind, report.main, report.rows, report.dataset) == ("sts", "spearman_cosine", 12, "pairs")
    for name, closeness in PAIRWISE.items():
        scores = closeness(model.encode(FIRST), model.encode(SECOND))
        pearson, spearman = scipy.stats.pearsonr(scores, SCORES)[0], scipy.stats.spearmanr(scores, SCORES)[0]
        assert report.metrics[f"pearson_{name}"] == pytest.approx(pearson, abs=1e-6)
        assert report.metrics[f"spearman_{name}"] == pytest.approx(spearman, abs=1e-6)


def test_cross_encoder(cross: CrossEncoder) -> None:
    report = evaluate(cross, PAIRS)
    scores = cross.predict(list(zip(FIRST, SECOND, strict=True)))
    assert set(report.metrics) == {"pearson", "spearman"}
    assert report.score == pytest.approx(scipy.stats.spearmanr(scores, SCORES)[0], abs=1e-6)


def test_prompt_is_used(model: BiEncoder) -> None:
    report = evaluate(model, PAIRS, prompt="query: ")
    vectors = [model.encode(["query: " + text for text in side]) for side in (FIRST, SECOND)]
    expected = scipy.stats.spearmanr(PAIRWISE["cosine"](*vectors), SCORES)[0]
    assert report.score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rows", [[0], [1, 2]])
def test_undefined_is_said(model: BiEncoder, rows: list[int]) -> None:
    report = evaluate(model, PAIRS.take(rows))  # one row; two rows of the same score
    assert math.isnan(report.score)
    assert any("undefined: " in note and "spearman_cosine" in note for note in report.notes)


def test_refused(model: BiEncoder, cross_nli: CrossEncoder) -> None:
    with pytest.raises(InputError, match="has 3 labels"):
        evaluate(cross_nli, PAIRS)
    with pytest.raises(InputError, match="there are no scores"):
        evaluate(model, Examples("bare", (["a"], ["b"])), kind="sts")
    with pytest.raises(InputError, match="2 text columns are needed, not 1"):
        evaluate(model, Examples("bare", (["a"],), scores=np.array([1.0])), kind="sts")
