"""Laws of every engine: scores, the nearest, ties, words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.stores.filters import Compare
from munjang.vectors.similarity import SIMILARITIES
from tests.contracts.stores.engines import (
    METRICS,
    PRECISIONS,
    WIDTH,
    Place,
    make_queries,
    make_schema,
    one_row,
    seen_vectors,
)
from tests.stores.rows import make_rows


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("vectors", PRECISIONS)
def test_scores_are_those_of_the_full_vectors(place: Place, metric: str, vectors: str) -> None:
    schema = make_schema(metric=metric, vectors=vectors, fields={})
    store = place.open(schema)
    rows, queries = make_rows(300, schema), make_queries(5)
    store.add(rows)
    scores_QN = SIMILARITIES[metric](queries, seen_vectors(rows))
    for query, found in enumerate(store.search(queries, 300)):
        place_of = {row_id: row for row, row_id in enumerate(rows.ids)}
        expected = scores_QN[query][[place_of[row_id] for row_id in found.ids]]
        np.testing.assert_allclose(found.scores, expected, atol=1e-5, rtol=1e-6)
        assert found.scores == sorted(found.scores, reverse=True)
        assert len(set(found.ids)) == 300


@pytest.mark.parametrize("metric", METRICS)
def test_the_nearest_are_found(place: Place, metric: str) -> None:
    schema = make_schema(metric=metric, fields={})
    store, rows, queries = place.open(schema), make_rows(300, schema), make_queries(5)
    store.add(rows)
    scores_QN = SIMILARITIES[metric](queries, seen_vectors(rows))
    for query, found in enumerate(store.search(queries, 10)):
        best = np.argsort(-scores_QN[query], kind="stable")[:10]
        assert found.ids == [rows.ids[row] for row in best]


@pytest.mark.parametrize("metric", METRICS)
def test_a_zero_vector_has_a_score_too(place: Place, metric: str) -> None:
    """Cosine: 0, closer than what points away. A query of zeros is equally close to all."""
    schema = make_schema(metric=metric, fields={})
    store, rows, queries = place.open(schema), make_rows(6, schema), make_queries(2)
    queries[1] = 0
    rows.vectors[2] = 0
    store.add(rows)
    scores_QN = SIMILARITIES[metric](queries, rows.vectors)
    for scores, found in zip(scores_QN, store.search(queries, 6), strict=True):
        order = sorted(range(6), key=lambda row: (-scores[row], rows.ids[row]))
        assert found.ids == [rows.ids[row] for row in order]
        np.testing.assert_allclose(found.scores, scores[order], atol=1e-5)
    assert store.search(queries[[1]], 2)[0].ids == [rows.ids[row] for row in order[:2]]


@pytest.mark.parametrize("metric", METRICS)
def test_equal_scores_go_by_id(place: Place, metric: str) -> None:
    schema = make_schema(metric=metric, fields={})
    store, rows = place.open(schema), make_rows(40, schema)
    rows.vectors[5:] = rows.vectors[5]
    store.add(replace(rows, ids=[f"r{(row * 7) % 40:02d}" for row in range(40)]))
    equal = sorted(f"r{(row * 7) % 40:02d}" for row in range(5, 40))
    found = store.search(rows.vectors[[5]], 10)[0]
    assert [row_id for row_id in found.ids if row_id in equal] == equal[: len(set(found.ids) & set(equal))]
    assert len(found.ids) == 10
    assert len(set(found.scores)) <= 6


def test_k_larger_than_the_rows(place: Place) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(make_rows(3, schema))
    assert len(store.search(make_queries(1), 1000)[0].ids) == 3
    assert len(store.search(make_queries(1), 1000, Compare("id", "!=", "r1"))[0].ids) == 2


@pytest.mark.parametrize("queries", [np.zeros((1, WIDTH + 1), np.float32), np.full((1, WIDTH), np.nan, np.float32)])
def test_queries_that_do_not_fit(place: Place, queries: np.ndarray) -> None:
    store = place.open(make_schema())
    with pytest.raises(InputError, match=r"dimensions|NaN"):
        store.search(queries, 3)


@pytest.mark.parametrize("k", [0, 2.5, "3"])
def test_k_is_a_whole_number(place: Place, k: Any) -> None:
    store = place.open(make_schema())
    with pytest.raises(InputError, match="k must be a whole number from 1"):
        store.search(make_queries(1), k)


def test_words(place: Place) -> None:
    schema = make_schema(fields={"year": "int"})
    store = place.open(schema)
    if not store.abilities.has_terms:
        pytest.skip("no BM25")
    texts = ["the quick fox", "the lazy dog", "a fox a fox a fox", "한국 어 문장", "nothing of it", "the"]
    metadata = [{"year": year} for year in range(6)]
    rows = make_rows(6, schema)
    store.add(replace(rows, texts=texts, terms=texts, metadata=metadata))
    first, second, third = store.search_terms(["fox", "문장", "zebra"], 10)
    assert (first.ids, second.ids, third.ids) == (["r2", "r0"], ["r3"], [])
    assert first.scores == sorted(first.scores, reverse=True)
    assert first.scores[1] > 0
    assert store.search_terms(["fox lazy"], 1)[0].ids[0] in ("r1", "r2")
    assert store.search_terms(["fox"], 10, Compare("year", "<", 2))[0].ids == ["r0"]
    store.delete(["rdocument1"])
    assert store.search_terms(["fox"], 10)[0].ids == ["r0"]
    store.upsert(replace(one_row(schema), texts=["a zebra"], terms=["a zebra"]))
    store.compact()
    assert store.search_terms(["zebra"], 10)[0].ids == ["r0"]
    assert store.search_terms(["fox"], 10)[0].ids == []
    assert store.search_terms(["", "\"' OR * ( -the :", "the~2 the^3"], 10)[0].ids == []
