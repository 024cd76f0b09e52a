"""Clustering: texts of few distinct kinds fall into their classes."""

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from tests.texts import ENGLISH


def test_equal_texts_are_one_cluster(model: BiEncoder) -> None:
    texts = [ENGLISH[row % 3] for row in range(12)]
    report = evaluate(model, Examples("texts", (texts,), labels=np.arange(12) % 3), kind="clustering")
    assert (report.main, report.score) == ("v_measure", pytest.approx(1))
    mixed = evaluate(model, Examples("texts", (texts,), labels=np.arange(12) // 4), kind="clustering")
    assert mixed.score < 0.2
    assert mixed.notes == ("k-means with 3 clusters, the best of 10 starts, seed 0",)


def test_one_class_is_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="all rows are of one class"):
        evaluate(model, Examples("texts", (ENGLISH[:4],), labels=np.zeros(4, np.int64)), kind="clustering")
