"""The greedy picks against a naive version that computes every determinant."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.determinantal import determinantal
from munjang.vectors.similarity import unit


def naive(scores: np.ndarray, units: np.ndarray, top: int, diversity: float) -> list[int]:
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
def test_as_the_naive_version(diversity: float) -> None:
    random = np.random.default_rng(2)
    units = unit(random.normal(size=(30, 6)).astype(np.float32))
    scores = random.random(30).astype(np.float32)
    assert determinantal(scores, units, 5, diversity).tolist() == naive(scores, units, 5, diversity)


def test_equal_items_and_few_of_them() -> None:
    same = np.ones((4, 3), np.float32) / np.sqrt(3)
    assert sorted(determinantal(np.array([1, 2, 3, 4], np.float32), same, 10, 0.5).tolist()) == [0, 1, 2, 3]
    assert determinantal(np.zeros(0, np.float32), same[:0], 3, 0.5).tolist() == []
    with pytest.raises(InputError, match="diversity must be between"):
        determinantal(np.zeros(4, np.float32), same, 3, 1.5)
