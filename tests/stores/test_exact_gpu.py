import numpy as np
import pytest
import torch

from munjang.stores import exact, exact_gpu
from munjang.stores.base import Schema
from munjang.stores.memory.store import MemoryStore
from tests.stores.rows import make_rows

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


def test_without_a_gpu_the_other_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_gpu, "MIN_ROWS", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    vectors, lengths = np.ones((3, 2), np.float32), np.full(3, np.sqrt(2), np.float32)
    assert exact_gpu.OnGpu().candidates(vectors[:1], vectors, lengths, np.arange(3), 1, "dot") is None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("vectors", ["float32", "float16"])
def test_finds_what_numpy_finds(monkeypatch: pytest.MonkeyPatch, device: str, metric: str, vectors: str) -> None:
    """All rows, after rows were added and removed, and with more equal rows than it can tell apart."""
    monkeypatch.setattr(exact_gpu, "MIN_ROWS", 1)
    monkeypatch.setattr(exact_gpu, "BLOCK_SCORES", 8000)  # two queries at a time
    schema = Schema(32, metric=metric, vectors=vectors)
    store, rows = MemoryStore(schema), make_rows(3000, schema)
    queries = np.random.default_rng(3).standard_normal((5, 32)).astype(np.float32)
    rows.vectors[100:300] = rows.vectors[7] * 2
    queries[4] = rows.vectors[7] * 2
    store.add(rows)
    for change in range(3):
        table = store._table
        given = (table.full.rows, table.lengths.rows, np.flatnonzero(table.is_alive.rows), 10, metric)
        monkeypatch.setattr(exact_gpu, "_device", lambda torch: torch.device(device))
        assert store._on_gpu.candidates(queries, *given) is None  # 200 equal rows
        found = store._on_gpu.candidates(queries[:4], *given)
        assert found is not None
        ours = [each.ids for part in (queries[:4], queries[4:]) for each in store.search(part, 10)]
        monkeypatch.setattr(exact_gpu, "_device", lambda torch: None)
        assert ours == [each.ids for each in store.search(queries, 10)]
        for places, others in zip(found, exact.candidates(queries[:4], *given), strict=True):
            assert len(set(places) & set(others)) >= 10
        if change == 0:
            store.add(make_rows(500, schema, seed=5, prefix="more"))
        else:
            store.delete([f"rdocument{number}" for number in range(500, 900)])
