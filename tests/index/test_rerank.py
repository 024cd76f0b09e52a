"""Ordering hits once more: both scores on one scale, and scores that never contradict the order shown."""

from collections.abc import Sequence

import numpy as np
import pytest

from munjang.index.rerank import added, ordered
from munjang.types import Hit

NAN = float("nan")


def found(scores: Sequence[float]) -> list[Hit]:
    """What a retrieval found, best first, with these scores."""
    return [
        Hit(n, "", score, id=f"p{n + 1}", document_id=f"d{n + 1}", retrieval_score=score)
        for n, score in enumerate(scores)
    ]


def sigmoid(logits: Sequence[float]) -> list[float]:
    return [float(1 / (1 + np.exp(-each))) for each in logits]


def test_added_by_hand() -> None:
    """[1, 3] is -1 and 1 in z-scores, [10, 10] has no spread and is 0, [0, 2, 1] has a spread of sqrt(2/3)."""
    np.testing.assert_allclose(added(np.array([1.0, 3.0]), np.array([3.0, 1.0]), 0.75), [-0.5, 0.5])
    np.testing.assert_allclose(added(np.array([10.0, 10.0]), np.array([3.0, 1.0]), 0.5), [0.5, -0.5])
    np.testing.assert_allclose(
        added(np.array([0.0, 2.0, 1.0]), np.zeros(3), 1.0), np.array([-1.0, 1.0, 0.0]) / np.sqrt(2 / 3)
    )
    np.testing.assert_allclose(added(np.array([1.0, NAN, 3.0]), np.array([1.0, 1.0, 1.0]), 1.0), [-1, NAN, 1])


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("num_read", [0, 1, 2, 7, 12])
def test_scores_never_contradict_the_order(weight: float, num_read: int) -> None:
    """Cosines of 0.9 behind logits of -8, which are 0.0003 to the cross-encoder: the scores say so too."""
    hits = found(np.linspace(0.9, 0.8, 12).tolist())
    draws = np.random.default_rng(num_read)
    logits = (draws.normal(size=num_read) * 3 - 8).tolist()
    again = ordered(hits, logits, sigmoid(logits), weight)
    assert [hit.score for hit in again] == sorted((hit.score for hit in again), reverse=True)
    assert sorted(hit.id for hit in again) == sorted(hit.id for hit in hits)
    assert all(hit.rerank_score is not None for hit in again[:num_read])
    assert [hit.rerank_score for hit in again[num_read:]] == [None] * (12 - num_read)
    assert [hit.retrieval_rank for hit in again[num_read:]] == list(range(num_read + 1, 13))


def test_hits_that_were_not_read_have_the_lowest_score() -> None:
    again = ordered(found([0.9, 0.8, 0.7, 0.6]), [-1.0, 2.0], [0.27, 0.88], 1.0)
    assert [(hit.id, hit.score) for hit in again] == [("p2", 0.88), ("p1", 0.27), ("p3", 0.27), ("p4", 0.27)]
    assert [hit.retrieval_score for hit in again] == [0.8, 0.9, 0.7, 0.6]
    assert ordered(found([0.9, 0.8]), [], [], 0.5) == found([0.9, 0.8])  # nothing was read


def test_a_lone_candidate_is_on_the_scale_of_all_others() -> None:
    (alone,) = ordered(found([0.9]), [4.0], [0.98], 0.5)
    assert (alone.score, alone.rerank_score) == (0.5, 0.98)
    (all_its_own,) = ordered(found([0.9]), [4.0], [0.98], 1.0)
    assert (all_its_own.score, all_its_own.rerank_score) == (0.98, 0.98)


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_scores_that_are_no_numbers_come_last(weight: float) -> None:
    """They take no other candidate's score away."""
    scores = [0.1, NAN, 0.3, 0.2, NAN]
    again = ordered(found([0.9] * 5), scores, scores, weight)
    assert [hit.retrieval_rank for hit in again] == [3, 4, 1, 2, 5]
    assert np.isnan([hit.score for hit in again]).tolist() == [False, False, False, True, True]
    (_, unread) = ordered(found([0.9, 0.8]), [NAN], [NAN], weight)
    assert unread.score == 0.8
    assert ordered([], [], [], weight) == []
