"""Duplicates: equal and similar ones, in a set and against another; what is dropped has a witness that stays."""

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.tasks.dedupe import deduplication
from munjang.tasks.dedupe.deduplication import KEEP, Dropped, dedupe, normal
from munjang.tasks.paraphrases import neighbours
from munjang.vectors.similarity import unit
from tests.tasks.paraphrases.test_mining import near


def test_equal_but_for_what_means_nothing() -> None:
    texts = ["It rains.", "A cat.", "it  RAINS. ", "Ａ cat.", "a dog"]
    found = dedupe(texts, threshold=None)
    assert found.kept == [0, 1, 4]
    assert found.dropped == [Dropped(2, 0, 1.0, "equal", False), Dropped(3, 1, 1.0, "equal", False)]
    assert normal(" Straße\n") == normal("STRASSE")


def test_the_longest_of_equal_ones_stays() -> None:
    assert dedupe(["a b", "a   b", "c"], threshold=None, keep="longest").kept == [1, 2]


@pytest.mark.parametrize("keep", ["first", "central"])
def test_who_is_dropped_has_one_that_stays(keep: str) -> None:
    vectors = near(600)
    found = dedupe(vectors, threshold=0.7, keep=keep)
    scores = unit(vectors) @ unit(vectors).T
    assert len(found.kept) + len(found.dropped) == 600
    assert len(found.dropped) > 50
    for each in found.dropped:
        assert each.kept in found.kept
        assert each.score >= 0.7
        assert each.score == pytest.approx(scores[each.index, found.kept].max(), abs=2e-6)  # the nearest that stays
    kept = scores[np.ix_(found.kept, found.kept)] - 2 * np.eye(len(found.kept))
    assert kept.max() < 0.7 + 2e-6  # no two that stay are similar


def test_which_one_stays() -> None:
    angles = np.radians([0, 20, 40])  # the middle one is near both
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    assert dedupe(vectors, threshold=0.9, keep="first").kept == [0, 2]
    assert dedupe(vectors, threshold=0.9, keep="central").kept == [1]
    assert dedupe(["a", "b", "longer"], vectors=vectors, threshold=0.9, keep="longest").kept == [0, 2]


def test_a_witness_stays_itself() -> None:
    texts = ["one", "ONE", "one more"]
    vectors = np.array([[1, 0], [1, 0], [0.99, 0.1]], np.float32)
    found = dedupe(texts, vectors=vectors, threshold=0.9, keep="longest")
    assert found.kept == [2]  # "ONE" equals "one", which then goes for the longer one
    assert [(each.index, each.kept, each.reason) for each in found.dropped] == [(0, 2, "similar"), (1, 2, "similar")]


def test_a_test_set_against_a_training_set() -> None:
    train, test = ["The cat sat.", "It rains"], ["it rains", "the dog", "cats sit", "cats sat"]
    train_vectors = np.eye(3, dtype=np.float32)[[0, 1]]
    test_vectors = np.array([[0, 1, 0], [0, 0, 1], [0.98, 0, 0.1], [0.98, 0, 0.15]], np.float32)
    found = dedupe(test, train, vectors=test_vectors, reference_vectors=train_vectors, threshold=0.99)
    assert found.kept == [1, 3]
    first, second = found.dropped
    assert first == Dropped(0, 1, 1.0, "equal", True)
    assert (second.index, second.kept, second.reason, second.is_reference) == (2, 0, "similar", True)
    assert second.score == pytest.approx(0.98 / np.hypot(0.98, 0.1), abs=1e-6)


def test_texts_through_a_model(tiny_bert: object) -> None:
    model = BiEncoder.load(str(tiny_bert), device="cpu")
    found = dedupe(["the cat sat", "something else entirely", "the cat sat!"], model=model, threshold=0.9999)
    assert found.kept[0] == 0
    assert dedupe(["the cat", "THE CAT"], ["the cat"], model=model).kept == []


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_a_crowd_is_looked_at_in_blocks(keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = near(400)
    vectors[100:300] = vectors[0] + 0.01 * vectors[100:300]  # 20,000 pairs
    texts = [f"{'x' * (row * 7 % 50)} {row}" for row in range(400)]
    known = near(50, seed=1)
    known[:40] = vectors[0]
    expected = dedupe(texts, vectors=vectors, threshold=0.7, keep=keep)
    held_out = dedupe(vectors, known, threshold=0.7)
    monkeypatch.setattr(neighbours, "MAX_EDGES", 8000)
    monkeypatch.setattr(deduplication, "BLOCK_ROWS", 64)
    found = dedupe(texts, vectors=vectors, threshold=0.7, keep=keep)
    assert found.kept == expected.kept
    assert [(each.index, each.kept) for each in found.dropped] == [(each.index, each.kept) for each in expected.dropped]
    assert dedupe(vectors, known, threshold=0.7).kept == held_out.kept
    with pytest.raises(InputError, match="Keep the first or the longest"):
        dedupe(vectors, threshold=0.7, keep="central")


def test_equal_vectors_reach_a_threshold_of_one() -> None:
    vectors = np.repeat(near(200, width=384), 2, 0)
    assert dedupe(vectors, threshold=1.0).kept == list(range(0, 400, 2))


def test_vectors_of_another_shape() -> None:
    with pytest.raises(InputError, match="48 and 24 dimensions; encode both with one model"):
        dedupe(near(5), near(5, width=24))
    with pytest.raises(InputError, match="a row for each text"):
        dedupe(np.ones(4, np.float32))
    with pytest.raises(InputError, match="a row for each text"):
        dedupe(["a", "b"], vectors=np.ones(2, np.float32))


def test_few_and_bad() -> None:
    assert dedupe([]).kept == []
    assert dedupe(near(1)).kept == [0]
    assert dedupe(np.ones((5, 3), np.float32)).kept == [0]
    assert dedupe(["a"], vectors=near(1)).kept == [0]
    with pytest.raises(InputError, match="choose from central, first, longest"):
        dedupe(["a"], keep="best")
    with pytest.raises(InputError, match="threshold is a cosine"):
        dedupe(["a"], threshold=95)
    with pytest.raises(InputError, match="need texts"):
        dedupe(near(3), threshold=None)
    with pytest.raises(InputError, match="compares texts only"):
        dedupe(["a"], near(3), threshold=None)
    with pytest.raises(InputError, match="2 texts, but 3 vectors"):
        dedupe(["a", "b"], vectors=near(3))
    assert set(KEEP) == {"first", "longest", "central"}
