"""Nearest rows: as by sorting everything, whatever the blocks."""

import numpy as np
import pytest

from munjang.vectors import nearest as neighbours
from munjang.vectors.similarity import SIMILARITIES


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
@pytest.mark.parametrize("block", [1, 50, 1 << 24])
def test_as_sorting(similarity: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "BLOCK_SCORES", block)
    random = np.random.default_rng(0)
    a = random.integers(-2, 3, (7, 3)).astype(np.float32)
    b = random.integers(-2, 3, (20, 3)).astype(np.float32)  # whole numbers: many ties
    scores = SIMILARITIES[similarity](a, b)
    for depth in (1, 5, 50):
        found = list(neighbours.nearest(a, b, depth, similarity))
        assert len(found) == 7
        for row, (places, close) in enumerate(found):
            np.testing.assert_allclose(close, np.sort(scores[row])[::-1][:depth], atol=1e-6)
            np.testing.assert_allclose(scores[row][places], close, atol=1e-6)
            assert len(set(places.tolist())) == min(depth, 20)


def test_of_equal_rows_the_first() -> None:
    ones = np.ones((4, 2), np.float32)
    assert next(neighbours.nearest(ones[:1], ones, 2))[0].tolist() == [0, 1]
    assert list(neighbours.nearest(ones[:0], ones, 2)) == []
