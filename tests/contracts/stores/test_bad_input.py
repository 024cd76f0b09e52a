"""Laws of every engine: hostile texts are texts, and rows and schemas that don't fit are refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.stores.filters import Compare, Like
from tests.contracts.stores.engines import WIDTH, Place, assert_same_rows, make_queries, make_schema
from tests.stores.rows import make_rows

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
    with pytest.raises(InputError, match="exists already"):
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
        ({"ids": [""]}, "non-empty"),
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
        ({"dimension": 0}, "dimensions, not 0"),
        ({"fields": {"id": "text"}}, "'id' is a column of every row"),
        ({"fields": {"": "text"}}, "needs a name"),
        ({"fields": {"a\0": "text"}}, "NUL"),
        ({"fields": {"a" * 201: "text"}}, "at most 200 characters; .* has 201"),
        ({"fields": {f"f{number}": "int" for number in range(501)}}, "at most 500 metadata fields"),
        ({"fields": {"a": "date"}}, "Unknown kind of the metadata field 'a'"),
    ]:
        with pytest.raises(InputError, match=message):
            place.open(make_schema(**changes))
    with pytest.raises(InputError, match="There is no store"):
        place.open(make_schema(), create=False)
    with pytest.raises(InputError, match="There is no store"):
        place.open(None)


def test_metadata_keys_are_bounded(place: Place) -> None:
    store = place.open(make_schema(fields={f"f{number}": "int" for number in range(400)}))
    many = {f"f{number}": number for number in range(101)}
    with pytest.raises(InputError, match="at most 100 metadata keys; 'r0' has 101"):
        store.add(replace(make_rows(1, make_schema()), metadata=[many]))
    with pytest.raises(InputError, match="at most 500 metadata fields; it has 400 and 101 more"):
        store.extend({f"g{number}": "int" for number in range(101)})
    assert len(store.schema.fields) == 400
    store.extend({f"g{number}": "int" for number in range(100)})
    store.extend({"g1": "int"})  # known: nothing to do
    assert len(store.schema.fields) == 500
