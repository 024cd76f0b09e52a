"""The graph of neighbours and its components, against all scores."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.paraphrases import neighbours as module
from munjang.tasks.paraphrases.neighbours import components, graph_of, neighbours
from munjang.vectors.similarity import unit
from tests.tasks.paraphrases.test_mining import near


def test_every_neighbour_best_first() -> None:
    vectors = unit(near(1200))
    graph = neighbours(vectors, 0.7)
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    for row in range(1200):
        expected = [place for place in np.argsort(-scores[row]).tolist() if scores[row, place] >= 0.7]
        assert set(graph.of(row).tolist()) == set(expected)
        assert np.allclose(graph.scores_of(row), np.sort(graph.scores_of(row))[::-1])


def test_components_follow_paths() -> None:
    rows, columns = np.array([0, 3, 5, 2]), np.array([4, 5, 1, 4])
    graph = graph_of(rows, columns, np.ones(4, np.float32), 7)
    assert components(graph).tolist() == [0, 1, 0, 1, 0, 1, 2]  # 0-4-2, 3-5-1, 6
    chain = graph_of(np.arange(999), np.arange(1, 1000), np.ones(999, np.float32), 1000)
    assert set(components(chain).tolist()) == {0}
    assert components(graph_of(*(np.zeros(0, np.int64),) * 2, np.zeros(0, np.float32), 0)).tolist() == []


def test_too_many_pairs_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EDGES", 100)
    with pytest.raises(InputError, match="Raise the threshold"):
        neighbours(unit(near(200)), -1)
    with pytest.raises(InputError, match="must be a number"):
        neighbours(unit(near(5)), float("nan"))
