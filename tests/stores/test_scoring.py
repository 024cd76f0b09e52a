import numpy as np

from munjang.stores.base import Found
from munjang.stores.scoring import best, rescored
from munjang.vectors.similarity import PAIRWISE


def test_best_first_and_equal_ones_by_id() -> None:
    assert best(["d", "c", "b", "a"], np.array([1.0, 2.0, 2.0, 0.0]), 3) == Found(["b", "c", "d"], [2.0, 2.0, 1.0])
    assert best([], np.zeros(0), 3) == Found([], [])


def test_equal_vectors_have_equal_scores_wherever_they_stand() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((101, 77)).astype(np.float16)
    vectors[::10] = vectors[0]
    query = generator.standard_normal(77).astype(np.float32)
    ids = [f"{row:03d}" for row in range(101)]
    for metric in ("cosine", "dot", "euclidean"):
        found = rescored(query, ids, vectors, metric, 200)
        score_of = dict(zip(found.ids, found.scores, strict=True))
        assert len({score_of[f"{row:03d}"] for row in range(0, 101, 10)}) == 1
        expected = PAIRWISE[metric](np.tile(query, (101, 1)), vectors.astype(np.float32))
        np.testing.assert_allclose([score_of[row_id] for row_id in ids], expected, rtol=1e-6)
    assert rescored(query, [], np.zeros((0, 77), np.float32), "dot", 3) == Found([], [])
