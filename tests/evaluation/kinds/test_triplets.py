"""Triplets: the positive has to be closer than every negative."""

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from tests.texts import ENGLISH

A, B, C = ENGLISH[:3]


def test_accuracy_by_hand(model: BiEncoder) -> None:
    # right, wrong, and a tie, which is not closer
    report = evaluate(model, Examples("triplets", ([A, A, A], [A, B, B], [B, A, B])))
    assert report.kind == "triplets"
    assert report.metrics == dict.fromkeys(
        ["accuracy_cosine", "accuracy_dot", "accuracy_euclidean", "accuracy_manhattan"], pytest.approx(1 / 3)
    )


def test_every_negative_counts(model: BiEncoder) -> None:
    report = evaluate(model, Examples("more", ([A, A], [A, B], [B, C], [C, A])))
    assert report.metrics["accuracy_euclidean"] == 0.5


def test_a_cross_encoder_is_refused(cross: CrossEncoder) -> None:
    with pytest.raises(InputError, match=r"triplets needs vectors.*sts, nli, pairs, reranking"):
        evaluate(cross, Examples("triplets", ([A], [A], [B])))
