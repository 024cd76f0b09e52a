import numpy as np
import pytest

from munjang.index.fusion import by_ranks, by_scores, fuse
from munjang.stores.base import Found

DENSE, WORDS = Found(["a1", "b1", "c1"], [0.9, 0.8, 0.5]), Found(["b2", "a1"], [8.0, 4.0])
HALVES = {"dense": 0.5, "words": 0.5}


def test_values_of_one_order() -> None:
    spread = np.std([0.9, 0.8, 0.5])
    assert by_scores(DENSE) == pytest.approx({"a1": 0.4 / spread, "b1": 0.3 / spread, "c1": 0.0})
    assert by_scores(Found(["a"], [0.3])) == {"a": 1.0}
    assert by_scores(Found(["a", "b"], [2.0, 2.0])) == {"a": 1.0, "b": 1.0}
    assert by_scores(Found([], [])) == {}
    assert by_scores(Found(["a"], [3.0]), 4) == pytest.approx({"a": 3 / np.std([3, 0, 0, 0])})
    assert by_ranks(WORDS) == pytest.approx({"b2": 1.0, "a1": 61 / 62})


def test_a_document_counts_by_its_best_row_of_each_way() -> None:
    """Document b has its words in b2 and its meaning in b1, and comes before a, which is ahead by meaning alone."""
    documents = {"a1": "a", "b1": "b", "b2": "b", "c1": "c"}
    fused = fuse({"dense": DENSE, "words": WORDS}, HALVES, "scores", documents)
    assert [row.id for row in fused] == ["b2", "b1", "a1", "c1"]
    spread = float(np.std([0.9, 0.8, 0.5]))
    words = 8 / float(np.std([8, 4, 0]))  # c1 is found by vectors alone
    best = 0.4 / spread + words  # of each way
    assert [row.score for row in fused] == pytest.approx(
        [(0.3 / spread + words) / best, (0.3 / spread + words) / best, (0.4 / spread + words / 2) / best, 0.0]
    )
    assert fused[2].ranks == {"dense": 1, "words": 2}
    assert fused[2].scores == {"dense": 0.9, "words": 4.0}
    by_row = fuse({"dense": DENSE, "words": WORDS}, HALVES, "scores", {id: id for id in documents})
    assert [row.id for row in by_row] == ["a1", "b2", "b1", "c1"]


def test_one_order_keeps_its_scores_and_weights_are_relative() -> None:
    alone = fuse({"dense": Found(["a", "b"], [-0.5, -2.0])}, HALVES, "scores", {"a": "A", "b": "B"})
    assert [(row.id, row.score) for row in alone] == [("a", -0.5), ("b", -2.0)]
    documents = {id: id for id in ("a1", "b1", "b2", "c1")}
    first, second = (
        fuse({"dense": DENSE, "words": WORDS}, {"dense": size, "words": 3 * size}, "ranks", documents)
        for size in (0.25, 5.0)
    )
    assert [row.score for row in first] == pytest.approx([row.score for row in second])


def test_rows_that_are_gone_are_left_out() -> None:
    assert [row.id for row in fuse({"dense": DENSE}, HALVES, "scores", {"b1": "b"})] == ["b1"]
