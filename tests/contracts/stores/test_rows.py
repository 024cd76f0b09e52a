"""Laws of every engine: rows come back as they went in, are replaced, deleted and scanned."""

from dataclasses import replace

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.stores.filters import Compare
from tests.contracts.stores.engines import PRECISIONS, WIDTH, Place, assert_same_rows, make_queries, make_schema
from tests.stores.rows import make_rows


@pytest.mark.parametrize("vectors", PRECISIONS)
def test_rows_come_back_as_they_went_in(place: Place, vectors: str) -> None:
    schema = make_schema(vectors=vectors)
    store, rows = place.open(schema), make_rows(20, schema)
    store.add(rows)
    order = [3, 0, 19]
    found = store.get(["r3", "nobody", "r0", "r19"], with_vectors=True)
    assert_same_rows(found, rows, order)
    assert found.vectors is not None
    assert found.vectors.dtype == rows.vectors.dtype
    assert np.array_equal(found.vectors, rows.vectors[order])
    if vectors in ("int8", "binary"):
        assert np.array_equal(found.full_vectors, rows.full_vectors[order])
    assert store.get(["r3"]).vectors is None
    assert len(store.get([])) == len(store.get(["nobody"])) == 0


def test_empty_store(place: Place) -> None:
    store = place.open(make_schema())
    assert store.count() == 0
    assert [found.ids for found in store.search(make_queries(2), 5)] == [[], []]
    assert store.search(make_queries(2), 5, Compare("year", "=", 1))[0].scores == []
    assert store.search(np.zeros((0, WIDTH), np.float32), 5) == []
    assert list(store.scan()) == []
    assert store.delete(["nobody"]) == 0
    assert len(store.get(["nobody"])) == 0
    assert store.passages(["nobody"]) == {"nobody": []}
    store.add(make_rows(0, make_schema()))
    store.compact()
    assert store.info()["rows"] == store.count() == 0


def test_an_id_that_is_there_is_refused_and_nothing_added(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(make_rows(3, schema))
    with pytest.raises(InputError, match="'r2' exists already"):
        store.add(replace(make_rows(3, schema, seed=1), ids=["new", "r2", "newer"]))
    with pytest.raises(InputError, match="'twice' occurs twice"):
        store.add(replace(make_rows(3, schema, seed=1), ids=["new", "twice", "twice"]))
    assert store.count() == 3
    assert list(store.get(["new", "newer", "twice"]).ids) == []


def test_upsert_takes_the_place(place: Place) -> None:
    schema = make_schema()
    store, new = place.open(schema), make_rows(6, schema, seed=1)
    store.add(make_rows(4, schema))
    store.upsert(new)
    assert store.count() == 6
    assert_same_rows(store.get(list(new.ids)), new, list(range(6)))
    query = new.vectors[[0]]
    assert store.search(query, 1)[0].ids == ["r0"]
    store.upsert(new)
    assert store.count() == 6
    assert sorted(store.search(query, 10)[0].ids) == sorted(new.ids)


def test_an_upsert_may_change_the_document(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(make_rows(2, schema))
    store.upsert(replace(make_rows(1, schema), document_ids=["another"]))
    assert store.passages(["rdocument0", "another"]) == {"rdocument0": ["r1"], "another": ["r0"]}
    assert store.delete(["rdocument0"]) == 1
    assert store.count() == 1


def test_delete_takes_all_rows_of_a_document(place: Place) -> None:
    schema = make_schema()
    store, rows = place.open(schema), make_rows(10, schema)
    store.add(rows)
    assert store.delete(["rdocument1", "nobody", "rdocument1"]) == 2
    assert store.count() == 8
    assert len(store.get(["r2", "r3"])) == 0
    assert "r2" not in store.search(rows.vectors[[2]], 10)[0].ids
    assert store.delete([]) == 0
    store.add(replace(make_rows(1, schema), ids=["r2"], document_ids=["rdocument1"]))
    assert store.passages(["rdocument1"]) == {"rdocument1": ["r2"]}


def test_remove_takes_single_rows(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(make_rows(10, schema))
    assert store.remove(["r2", "nobody", "r2", "r9"]) == 2
    assert store.remove([]) == store.remove(["r2"]) == 0
    assert store.count() == 8
    assert store.passages(["rdocument1", "rdocument4"]) == {"rdocument1": ["r3"], "rdocument4": ["r8"]}
    assert sorted(store.search(make_queries(1), 10)[0].ids) == [f"r{row}" for row in (0, 1, 3, 4, 5, 6, 7, 8)]


def test_passages_in_the_order_of_the_text(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(replace(make_rows(12, schema), document_ids=["d"] * 12, starts=list(range(120, 0, -10))))
    assert store.passages(["d", "nobody"]) == {"d": [f"r{row}" for row in range(11, -1, -1)], "nobody": []}
    assert store.passages([]) == {}


def test_scan_gives_every_row_once(place: Place) -> None:
    schema = make_schema()
    store, rows = place.open(schema), make_rows(25, schema)
    store.add(rows)
    store.delete(["rdocument0"])
    batches = list(store.scan(batch_rows=10))
    assert max(map(len, batches)) <= 10
    by_id = {row_id: vector for batch in batches for row_id, vector in zip(batch.ids, batch.vectors, strict=True)}
    assert sum(map(len, batches)) == len(by_id) == 23
    assert all(np.array_equal(by_id[f"r{row}"], rows.vectors[row]) for row in range(2, 25))
    assert next(store.scan(with_vectors=False)).vectors is None


def test_scan_is_of_the_moment_it_began(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(make_rows(25, schema))
    scan = store.scan(batch_rows=10)
    first = next(scan)
    store.delete(["rdocument0", "rdocument12"])
    store.add(make_rows(5, schema, prefix="later"))
    ids = [*first.ids, *(row_id for batch in scan for row_id in batch.ids)]
    assert sorted(ids) == sorted(f"r{row}" for row in range(25))
