"""Laws of every engine: sparse and token vectors beside the dense ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.stores import open_store
from munjang.stores.base import Found, Rows, Schema, Store
from munjang.stores.filters import Compare
from munjang.stores.lance import kept
from munjang.vectors.maxsim import maxsim
from munjang.vectors.similarity import unit
from munjang.vectors.sparse import SparseVectors
from tests.contracts.stores.engines import Place, make_queries, make_schema
from tests.stores.rows import make_rows

NUM_ROWS = 40


def opened(place: Place, **changes: Any) -> tuple[Schema, Store, Rows]:
    schema = make_schema(fields={"year": "int"}, **changes)
    try:
        store = place.open(schema)
    except InputError as error:
        if "can't search" not in str(error):
            raise
        pytest.skip(str(error))  # what an engine can't do it says
    rows = replace(make_rows(NUM_ROWS, schema), metadata=[{"year": row} for row in range(NUM_ROWS)])
    store.add(rows)
    return schema, store, rows


def order_of(rows: Rows, scores: list[float], places: list[int]) -> list[str]:
    best = sorted(places, key=lambda row: (-scores[row], rows.ids[row]))
    return [rows.ids[row] for row in best]


def test_sparse_vectors(place: Place) -> None:
    schema, store, rows = opened(place, sparse_dimension=50)
    assert rows.sparse is not None
    queries = SparseVectors.of([{3: 0.5, 17: 2.0, 49: 1.0}, {}, {0: 1.5}], 50)
    dense = rows.sparse.to_dense()
    for query, found in zip(queries.to_dense(), store.search_sparse(queries, NUM_ROWS), strict=True):
        scores = (dense @ query).tolist()
        hits = [row for row in range(NUM_ROWS) if scores[row] > 0]
        assert found.ids == order_of(rows, scores, hits)
        np.testing.assert_allclose(
            found.scores, sorted((scores[row] for row in hits), reverse=True), rtol=1e-5, atol=1e-6
        )
    [few] = store.search_sparse(queries[:1], 3, Compare("year", "<", 20))
    scores = (dense @ queries.to_dense()[0]).tolist()
    assert few.ids == order_of(rows, scores, [row for row in range(20) if scores[row] > 0])[:3]
    read = store.get(["r5", "r2"], with_vectors=True)
    assert read.sparse is not None
    np.testing.assert_array_equal(read.sparse.to_dense(), dense[[5, 2]])
    empty = replace(make_rows(1, schema, prefix="e"), metadata=[{}], sparse=SparseVectors.of([{}], 50))
    store.upsert(empty)
    store.upsert(replace(make_rows(1, schema, prefix="n"), metadata=[{}], sparse=SparseVectors.of([{49: 99.0}], 50)))
    assert store.search_sparse(queries[:1], 1)[0].ids == ["n0"]
    store.delete(["ndocument0"])
    assert store.search_sparse(queries[:1], 1)[0].ids == order_of(rows, scores, list(range(NUM_ROWS)))[:1]
    with pytest.raises(InputError, match="dimensions"):
        store.search_sparse(SparseVectors.of([{1: 1.0}], 9), 3)


@pytest.mark.parametrize("precision", ["int8", "float16", "float32"])
def test_token_vectors(place: Place, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, store, rows = opened(place, token_dimension=8, tokens=precision)
    assert rows.tokens is not None
    generator = np.random.default_rng(3)
    queries = [unit(generator.standard_normal((number, 8)).astype(np.float32)) for number in (5, 1)]
    for limit in (1 << 30, 10):  # kept in memory, and read for every search
        monkeypatch.setattr(kept, "MAX_KEPT_BYTES", limit)
        store.upsert(replace(make_rows(1, schema), metadata=[{"year": 0}]))  # another state of the table
        for query, found in zip(queries, store.search_tokens(queries, NUM_ROWS), strict=True):
            scores = maxsim(query, store.get(rows.ids, with_vectors=True).tokens or []).tolist()
            assert found.ids == order_of(rows, scores, list(range(NUM_ROWS)))
            np.testing.assert_allclose(found.scores, sorted(scores, reverse=True), rtol=1e-5, atol=1e-6)
        [few] = store.search_tokens(queries[:1], 3, Compare("year", ">=", 20))
        scores = maxsim(queries[0], rows.tokens).tolist()
        assert few.ids == order_of(rows, scores, list(range(20, NUM_ROWS)))[:3]
    read = store.get(["r7", "r1"], with_vectors=True)
    assert read.tokens is not None
    np.testing.assert_array_equal(read.tokens[0], rows.tokens[7])
    store.upsert(replace(rows, tokens=[vectors_TD[:0] for vectors_TD in rows.tokens]))  # texts without tokens
    assert store.search_tokens(queries, 3)[0].ids == []
    with pytest.raises(InputError, match="dimensions"):
        store.search_tokens([np.zeros((2, 9), np.float32)], 3)


def test_both_are_there_again(place: Place) -> None:
    if not place.engine.is_lasting:
        pytest.skip("does not last")
    _, store, rows = opened(place, sparse_dimension=50)
    query = SparseVectors.of([{3: 0.5, 17: 2.0}], 50)
    expected = store.search_sparse(query, 5)
    [scanned] = list(store.scan())
    assert scanned.sparse is not None
    store.close()
    again = place.open(None, create=False)
    assert again.schema.sparse_dimension == 50
    assert again.search_sparse(query, 5) == expected
    assert len(again.get(rows.ids, with_vectors=True).sparse or []) == NUM_ROWS


def widest(store_of: Callable[[Schema], Store]) -> Store:
    """Open a store with all that its engine can keep beside dense vectors."""
    try:
        return store_of(make_schema(fields={"year": "int"}, sparse_dimension=50, token_dimension=8))
    except InputError:
        return store_of(make_schema(fields={"year": "int"}, sparse_dimension=50))


def write(store: Store) -> None:
    """Write rows with sparse and token vectors, replace some and delete others."""
    store.add(replace(make_rows(NUM_ROWS, store.schema), metadata=[{"year": row} for row in range(NUM_ROWS)]))
    store.upsert(replace(make_rows(4, store.schema, seed=1), metadata=[{"year": row} for row in range(4)]))
    store.delete(["rdocument5"])


def write_and_be_killed(location: str) -> None:
    """Write to a new store and end without closing anything."""
    write(widest(lambda schema: open_store(location, schema, create=True)))
    os.kill(os.getpid(), signal.SIGKILL)


def found_by_every_way(store: Store) -> dict[str, list[Found]]:
    generator = np.random.default_rng(5)
    found = {"dense": store.search(make_queries(2), NUM_ROWS)}
    sparse = SparseVectors.of([{3: 0.5, 17: 2.0}, {0: 1.5}], 50)
    tokens = [unit(generator.standard_normal((number, 8)).astype(np.float32)) for number in (5, 1)]
    if store.abilities.has_terms:
        found["words"] = store.search_terms(["text 7", "문장 12"], NUM_ROWS)
    if store.abilities.has_sparse:
        found["sparse"] = store.search_sparse(sparse, NUM_ROWS)
    if store.schema.token_dimension:
        found["late"] = store.search_tokens(tokens, NUM_ROWS)
    return found


def test_every_way_answers_after_a_kill(place: Place) -> None:
    if not place.engine.is_lasting:
        pytest.skip("does not last")
    code = f"from {__name__} import write_and_be_killed; import sys; write_and_be_killed(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, place.location], check=False, timeout=120, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    again = place.open(None, create=False)
    fresh = open_store("memory:", again.schema, create=True)
    write(fresh)
    assert again.count() == fresh.count() == NUM_ROWS - 2
    wanted = found_by_every_way(fresh)
    for way, found in found_by_every_way(again).items():
        for ours, theirs in zip(found, wanted[way], strict=True):
            assert set(ours.ids) == set(theirs.ids), way
            if way != "words":  # an engine's BM25 has constants of its own
                assert ours.ids == theirs.ids, way
                np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4, atol=1e-5, err_msg=way)


def test_rows_that_do_not_fit(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    rows = make_rows(2, schema)
    with pytest.raises(InputError, match="no sparse vectors"):
        store.add(replace(rows, sparse=SparseVectors.of([{}, {}], 3)))
    with pytest.raises(InputError, match="no token vectors"):
        store.add(replace(rows, tokens=[np.zeros((1, 3), np.float32)] * 2))
    with pytest.raises(InputError, match="keeps no sparse"):
        store.search_sparse(SparseVectors.of([{}], 3), 1)
    with pytest.raises(InputError, match=r"keeps no token|can't search token"):
        store.search_tokens([np.zeros((1, 3), np.float32)], 1)
    if store.abilities.has_tokens:
        tokens = place.open(replace(schema, token_dimension=3), name="tokens")
        for wrong in ([np.zeros((1, 3), np.float32)] * 2, [np.zeros((1, 3), np.int8)], [np.zeros((1, 2), np.int8)] * 2):
            with pytest.raises(InputError, match=r"token vectors"):
                tokens.add(replace(rows, tokens=wrong))
