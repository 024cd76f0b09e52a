from dataclasses import replace

import numpy as np

from munjang.stores.base import Schema
from munjang.stores.memory.store import MemoryStore
from tests.stores.rows import make_rows


def test_rows_that_are_gone_free_their_place() -> None:
    """Half of the rows replaced again and again: the table does not grow for ever, and a scan that began stays."""
    schema = Schema(8)
    store, rows = MemoryStore(schema), make_rows(1500, schema)
    store.add(rows)
    scan = store.scan(batch_rows=500)
    for turn in range(6):
        store.upsert(replace(rows, texts=[f"{turn}"] * 1500))
    assert store.count() == 1500
    assert len(store._table.ids) <= 4500
    assert [text for batch in scan for text in batch.texts] == list(rows.texts)
    assert store.compact()["rows_removed"] <= 3000
    assert len(store._table.ids) == 1500
    assert np.array_equal(store.get(["r3"], with_vectors=True).vectors[0], rows.vectors[3])
