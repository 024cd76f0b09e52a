"""The nearest rows: as a full matrix has them, in blocks of any size, for every function of similarity."""

import numpy as np
import pytest
import torch

from munjang.training import nearest as module
from munjang.training.nearest import SCORES_BY_NAME, nearest
from munjang.vectors.similarity import SIMILARITIES

RANDOM = np.random.default_rng(5)
QUERIES = RANDOM.normal(size=(23, 6)).astype(np.float32)
CANDIDATES = RANDOM.normal(size=(57, 6)).astype(np.float32)
CPU = torch.device("cpu")
NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize(("queries", "scores"), [(100, 1 << 20), (7, 7 * 10), (1, 1)])
def test_as_the_full_matrix(name: str, queries: int, scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUERIES", queries)
    monkeypatch.setattr(module, "SCORES", scores)
    pairs = np.unique(RANDOM.integers(0, (23, 57), (80, 2)), axis=0)
    matrix = SIMILARITIES[name](QUERIES, CANDIDATES)
    matrix[pairs[:, 0], pairs[:, 1]] = -np.inf
    found, places = nearest(QUERIES, CANDIDATES, 9, name, (pairs[:, 0], pairs[:, 1]), CPU)
    assert np.array_equal(places, np.argsort(-matrix, axis=1)[:, :9])
    assert np.abs(found - np.take_along_axis(matrix, places, 1)).max() < 1e-5


def test_every_similarity_is_there() -> None:
    assert SCORES_BY_NAME.keys() == SIMILARITIES.keys()


def test_fewer_than_asked_for() -> None:
    found, places = nearest(QUERIES, CANDIDATES[:3], 10, "dot", NONE, CPU)
    assert found.shape == places.shape == (23, 3)
    everything = np.repeat(np.arange(23), 3), np.tile(np.arange(3), 23)
    assert (nearest(QUERIES, CANDIDATES[:3], 10, "dot", everything, CPU)[0] == -np.inf).all()
