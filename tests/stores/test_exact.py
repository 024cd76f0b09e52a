import numpy as np
import pytest

from munjang.nn.similarity import SIMILARITIES
from munjang.stores import exact


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_nearest_are_among_the_candidates(monkeypatch: pytest.MonkeyPatch, metric: str, dtype: type) -> None:
    """Over many blocks, with equal rows and a subset."""
    monkeypatch.setattr(exact, "BLOCK_SCORES", 1)  # blocks of 1,024 rows
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((5000, 12)).astype(dtype)
    vectors[1000:1100] = vectors[7]
    queries = np.concatenate([generator.standard_normal((3, 12)), vectors[[7]]]).astype(np.float32)
    full = vectors.astype(np.float32)
    lengths = np.linalg.norm(full, axis=1)
    for rows in (np.arange(5000), np.arange(0, 5000, 3), np.arange(10), np.zeros(0, np.int64)):
        found = exact.candidates(queries, vectors, lengths, rows, 20, metric)
        scores = SIMILARITIES[metric](queries, full[rows])
        for query, places in enumerate(found):
            limit = np.sort(scores[query])[-20:].min(initial=np.inf)
            assert set(rows[scores[query] >= limit]) <= set(places)
            assert len(set(places)) == len(places) <= 20 + 110
            assert set(places) <= set(rows)
