"""Picks by hand, and against every combination."""

from itertools import combinations

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.vectors.diversity import determinantal, marginal, max_sum
from munjang.vectors.nearest import top_k
from munjang.vectors.similarity import unit


def test_marginal_skips_a_twin() -> None:
    units = unit(np.array([[1, 0.1], [1, 0.11], [0.2, 1]], np.float32))
    scores = units @ unit(np.array([[1, 0.3]], np.float32))[0]
    assert marginal(scores, units, 2, diversity=0.0).tolist() == top_k(scores, 2).tolist() == [1, 0]
    assert marginal(scores, units, 2, diversity=0.7).tolist() == [1, 2]


def test_max_sum_is_the_least_alike_of_all_combinations() -> None:
    random = np.random.default_rng(0)
    units = unit(random.normal(size=(12, 6)).astype(np.float32))
    scores = units @ units[0]
    pool = top_k(scores, 8).tolist()
    best = min(combinations(pool, 3), key=lambda each: sum(units[a] @ units[b] for a, b in combinations(each, 2)))
    assert set(max_sum(scores, units, 3, num_candidates=8).tolist()) == set(best)


def test_fewer_candidates_than_asked_for() -> None:
    units = np.eye(2, dtype=np.float32)
    scores = np.array([0.1, 0.2], np.float32)
    assert marginal(scores, units, 5, 0.5).tolist() == [1, 0]
    assert max_sum(scores, units, 5, 20).tolist() == [1, 0]
    nothing = np.zeros(0, np.float32)
    assert marginal(nothing, units[:0], 5, 0.5).tolist() == []
    assert max_sum(nothing, units[:0], 5, 20).tolist() == []


def test_too_much_is_refused_with_a_way_out() -> None:
    units = np.eye(40, dtype=np.float32)
    with pytest.raises(InputError, match=r"847,660,528 combinations.*mmr"):
        max_sum(units[0], units, 10, 40)
    with pytest.raises(InputError, match="num_candidates"):
        max_sum(units[0], units, 5, 4)
    with pytest.raises(InputError, match="diversity"):
        marginal(units[0], units, 5, 1.5)


def naive_determinantal(scores: np.ndarray, units: np.ndarray, top: int, diversity: float) -> list[int]:
    kernel = (1 + units.astype(np.float64) @ units.T) / 2
    picks = [int(scores.argmax())]
    for _ in range(min(top, len(scores)) - 1):

        def worth(row: int) -> float:
            some = [*picks, row]
            volume = np.linalg.slogdet(kernel[np.ix_(some, some)])[1]
            return (1 - diversity) * sum(scores[some]) + diversity * volume

        picks.append(max((row for row in range(len(scores)) if row not in picks), key=worth))
    return picks


@pytest.mark.parametrize("diversity", [0.0, 0.2, 0.7, 1.0])
def test_determinantal_as_by_every_determinant(diversity: float) -> None:
    random = np.random.default_rng(2)
    units = unit(random.normal(size=(30, 6)).astype(np.float32))
    scores = random.random(30).astype(np.float32)
    assert determinantal(scores, units, 5, diversity).tolist() == naive_determinantal(scores, units, 5, diversity)


def test_determinantal_of_equal_items_and_of_few() -> None:
    same = np.ones((4, 3), np.float32) / np.sqrt(3)
    assert sorted(determinantal(np.array([1, 2, 3, 4], np.float32), same, 10, 0.5).tolist()) == [0, 1, 2, 3]
    assert determinantal(np.zeros(0, np.float32), same[:0], 3, 0.5).tolist() == []
    with pytest.raises(InputError, match="diversity must be between"):
        determinantal(np.zeros(4, np.float32), same, 3, 1.5)
