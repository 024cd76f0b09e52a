"""Laws of every engine: opened again, by name, twice, by many threads; fields and facts."""

import json
import threading
from dataclasses import replace

import pytest

from munjang.errors import InputError
from munjang.stores import open_store
from munjang.stores.filters import Compare, IsNull
from tests.contracts.stores.engines import FIELDS, Place, make_queries, make_schema, present
from tests.stores.rows import make_rows


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
    with pytest.raises(InputError, match="exists already"):
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
