import numpy as np
import pytest

from munjang.stores import exact
from munjang.vectors.similarity import SIMILARITIES


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("block_scores", "k"), [(1, 20), (1 << 21, 20), (1 << 21, 5), (1, 1)])
def test_the_nearest_are_among_the_candidates(
    monkeypatch: pytest.MonkeyPatch, metric: str, dtype: type, block_scores: int, k: int
) -> None:
    """In blocks of 1,024 rows and in one, with equal rows and a subset."""
    monkeypatch.setattr(exact, "BLOCK_SCORES", block_scores)
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((5000, 12)).astype(dtype)
    vectors[1000:1100] = vectors[7]
    queries = np.concatenate([generator.standard_normal((3, 12)), vectors[[7]]]).astype(np.float32)
    full = vectors.astype(np.float32)
    lengths = np.linalg.norm(full, axis=1)
    for rows in (np.arange(5000), np.arange(0, 5000, 3), np.arange(10), np.zeros(0, np.int64)):
        found = exact.candidates(queries, vectors, lengths, rows, k, metric)
        scores = SIMILARITIES[metric](queries, full[rows])
        for query, places in enumerate(found):
            limit = np.sort(scores[query])[-k:].min(initial=np.inf)
            assert set(rows[scores[query] >= limit]) <= set(places)
            assert len(set(places)) == len(places) <= 2 * k + 110
            assert set(places) <= set(rows)
