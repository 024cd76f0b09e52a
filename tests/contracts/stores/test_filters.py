"""Laws of every engine: filters keep the rows that match, and as many as were asked for."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from munjang.errors import InputError
from munjang.stores.filters import Compare, In, IsNull, Like, Not, Or, matches
from munjang.stores.parsing import parse
from tests.contracts.stores.engines import FIELDS, Place, as_filter_row, make_queries, make_schema
from tests.stores.rows import make_rows
from tests.stores.trees import random_tree


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


LARGE_FILTERS = {
    "or": " or ".join(f"year={number}" for number in range(800)),
    "and": " and ".join(f"year!={number}" for number in range(700)),
    "floats": " or ".join(f"year in ({','.join(f'{number}.5' for number in range(600))})" for _ in range(2)),
    "not": "not (" * 30 + " or ".join(f"year={number}" for number in range(700)) + ")" * 30,
    "nested": "(year=1 or year=2 and not " * 30 + "year=3" + ")" * 30,
}


@pytest.mark.parametrize("text", LARGE_FILTERS.values(), ids=LARGE_FILTERS)
def test_the_largest_filters_keep_the_rows_that_match(place: Place, text: str) -> None:
    schema = make_schema(fields={"year": "int"})
    store, rows = place.open(schema), make_rows(30, schema)
    rows = replace(rows, metadata=[{"year": row * 29} for row in range(30)])
    store.add(rows)
    tree = parse(text, schema.fields)
    expected = {rows.ids[row] for row in range(30) if matches(tree, as_filter_row(rows, row))}
    assert store.count(tree) == len(expected)
    assert set(store.search(make_queries(1), 30, tree)[0].ids) == expected


def test_more_tests_than_engines_take_are_refused(place: Place) -> None:
    store = place.open(make_schema())
    with pytest.raises(InputError, match=r"may have 5,000 tests.* has 5,001"):
        store.count(Or(tuple(Compare("year", "=", number) for number in range(5001))))


def test_an_unknown_name_in_a_filter(place: Place) -> None:
    store = place.open(make_schema())
    with pytest.raises(InputError, match=r"(?s)Unknown field 'yaer'.*Did you mean 'year'"):
        store.search(make_queries(1), 3, Compare("yaer", "=", 1))
    with pytest.raises(InputError, match="doesn't compare"):
        store.count(Compare("year", "=", "1 or true"))
