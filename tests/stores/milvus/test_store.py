"""Behaviour of Milvus alone; the laws of every store are in tests/contracts/stores.

On milvus-lite here, and on a real server by benchmarks/milvus_server.py.
"""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.stores.arrow import Columns
from munjang.stores.base import Rows, Schema, StoreError
from munjang.stores.filters import COMPARISONS, And, Compare, Filter, In, Like, Not, Or, matches
from munjang.vectors.similarity import SIMILARITIES
from tests.stores.servers import milvus_place

pytest.importorskip("pymilvus")
from munjang.stores.milvus import store as milvus
from munjang.stores.milvus.client import upsert_request
from munjang.stores.milvus.filters import expression, quoted
from munjang.stores.milvus.store import MilvusStore

pa = pytest.importorskip("pyarrow")
Make = Callable[..., MilvusStore]
ROOT = Path(__file__).parents[3]
NAMES = (f"store {number}" for number in itertools.count())


@pytest.fixture(params=["milvus-lite", "milvus-server"] if "MUNJANG_MILVUS" in os.environ else ["milvus-lite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "milvus-lite":
        pytest.importorskip("milvus_lite")
    location = milvus_place() if request.param == "milvus-server" else f"milvus-lite:{tmp_path}"
    return lambda name=None, min_graph_rows=100, **schema: MilvusStore(
        location, Schema(**schema) if schema else None, True, name or next(NAMES), min_graph_rows
    )


def rows(vectors: np.ndarray, metadata: Any = None, **changes: Any) -> Rows:
    ids = [f"r{number:05}" for number in range(len(vectors))]
    given = {"ids": ids, "document_ids": ids, "texts": ids, "starts": [0] * len(ids), "ends": [9] * len(ids)}
    return Rows(**{**given, **changes}, metadata=metadata or [{} for _ in ids], vectors=vectors)


def random_texts(number: int) -> list[str]:
    random = Random(3)
    odd = [*"\"\\'\n\r\t%_[]{}()$&|~`/", "한", "é", "\u0301", "🙂", "\u2028", "\x01", "\x7f", "\x85", "\ufeff"]
    odd += [
        "\U0010ffff",
        '" or id != "',
        '\\"',
        "\\n",
        "\\x41",
        "\\u0041",
        "m0",
        " and ",
        "==",
        "//",
        "/*",
        "null",
        "{0}",
    ]
    texts = {"".join(random.choices(odd, k=random.randint(1, 6))) for _ in range(number)}
    return sorted(texts | set(odd) | {"".join(random.choices([chr(code) for code in range(1, 0x250)], k=20))})


def test_texts_never_break_out(make: Make) -> None:
    texts = random_texts(150)
    store = make(dimension=2, fields={"text": "text"})
    vectors = np.ones((len(texts), 2), np.float32)
    store.add(rows(vectors, [{"text": text} for text in texts], ids=texts, document_ids=texts))
    assert sorted(store.get(texts).ids) == texts
    for start in range(0, len(texts), 40):
        some = texts[start : start + 40]
        expected = sorted(some)
        assert sorted(store.search(vectors[:1], 500, In("text", tuple(some)))[0].ids) == expected
        assert sorted(store.search(vectors[:1], 500, In("id", tuple(some)))[0].ids) == expected
        assert store.count(Not(In("text", tuple(some)))) == len(texts) - len(some)
    for prefix in ["\\", '"', "%", "_", "한", "\U0010ffff", '" or id != "', "\n"]:
        assert store.count(Like("text", prefix)) == sum(text.startswith(prefix) for text in texts), prefix
        assert store.count(Not(Like("id", prefix))) == sum(not text.startswith(prefix) for text in texts), prefix
    assert store.delete(texts) == len(texts)


def test_whole_numbers_and_floats_compare_as_everywhere(make: Make) -> None:
    numbers = [-(2**63), -(2**63) + 1, -(2**53) - 1, -1, 0, 1, 2020, 2**53, 2**53 + 1, 2**63 - 513, 2**63 - 1]
    values = [*numbers, 2020.5, -0.5, float(2**53) + 2, 9.2e18, -9.3e18, 1e300, -1e300, float(2**63)]
    store = make(dimension=2, fields={"n": "int", "f": "float"})
    metadata = [{"n": number, "f": float(number)} for number in numbers] + [{}]
    store.add(rows(np.ones((len(metadata), 2), np.float32), metadata))
    for value in values:
        trees: list[Filter] = [Compare("n", op, value) for op in COMPARISONS]
        trees += [Compare("f", op, float(value)) for op in COMPARISONS]
        trees += [Not(tree) for tree in trees]
        # A server takes 0.2 s for each question
        for tree in trees if value in (2020, 2020.5, -(2**63)) else trees[:6:2]:
            assert store.count(tree) == sum(matches(tree, row) for row in metadata), tree
        assert store.count(Or(tuple(trees))) == sum(any(matches(tree, row) for tree in trees) for row in metadata)


def test_a_deep_filter(make: Make) -> None:
    store = make(dimension=2, fields={"n": "int"})
    store.add(rows(np.ones((2, 2), np.float32), [{"n": 1}, {"n": 2}]))
    tree: Filter = Compare("n", "=", 1)
    for number in range(60):
        tree = And((Or((tree, Compare("n", "=", 7))), Compare("n", "!=", 9))) if number % 2 else Not(Not(tree))
    assert store.count(tree) == 1


@pytest.mark.parametrize("what", ["texts", "ids", "document_ids"])
def test_texts_of_65535_bytes(make: Make, what: str) -> None:
    store, vectors = make(dimension=2, fields={"a": "text"}), np.ones((1, 2), np.float32)
    longest = "가" * 21_845
    store.add(rows(vectors, **{what: [longest]}))
    assert getattr(next(store.scan()), what) == [longest]
    with pytest.raises(InputError, match="65,535"):
        store.upsert(rows(vectors, **{what: [longest + "x"]}))
    with pytest.raises(InputError, match=r"The metadata of 'r00000' has .* at most 65,535 fit"):
        store.upsert(rows(vectors, [{"a": longest}]))


def test_a_graph_gives_as_many_as_match(make: Make) -> None:
    vectors = np.random.default_rng(1).standard_normal((2000, 16)).astype(np.float32)
    store = make(dimension=16, fields={"part": "int"})
    store.add(rows(vectors, [{"part": number % 100} for number in range(2000)]))
    assert store.compact()["index"] == "HNSW: built"
    assert store.info()["indexes"] == ["HNSW"]
    query = np.random.default_rng(2).standard_normal((1, 16)).astype(np.float32)
    scores = SIMILARITIES["cosine"](query, vectors)[0]
    for where, fitting in [(None, np.arange(2000)), (Compare("part", "=", 7), np.arange(7, 2000, 100))]:
        [found] = store.search(query, 100, where)
        places = [int(row_id[1:]) for row_id in found.ids]
        assert len(places) == min(100, len(fitting))
        assert found.scores == pytest.approx(scores[places].tolist(), abs=1e-5)
        expected = set(fitting[np.argsort(-scores[fitting])][: len(places)].tolist())
        assert len(expected & set(places)) >= 0.9 * len(places)
    store.upsert(rows(vectors[:1] * 2, [{"part": 500}]))
    assert store.search(vectors[:1], 1, Compare("part", "=", 500))[0].ids == ["r00000"]


def columns(texts: list[str], ids: list[str] | None = None) -> Columns:
    names = ids or [f"r{number:05}" for number in range(len(texts))]
    return Columns(pa.array(names), pa.array(texts), np.ones((len(texts), 8), np.float32))


def test_long_texts_are_loaded_in_messages_that_the_server_takes(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus, "MAX_MESSAGE_BYTES", 200_000)
    store, sizes = make(dimension=8), []
    send = store._client.upsert_columns

    def counted(*message: Any) -> None:
        sizes.append(upsert_request(*message).ByteSize())
        send(*message)

    monkeypatch.setattr(store._client, "upsert_columns", counted)
    texts = ["가" * 20_000] * 30 + ["short"] * 300
    store.load(columns(texts), True)
    assert max(sizes) <= 200_000
    assert len(sizes) <= 12  # three long ones a message
    assert store.count() == 330
    assert store.get(["r00029#0", "r00030#0", "r00329#0"]).texts == [texts[0], "short", "short"]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_load_that_fails_leaves_what_was_there(make: Make, monkeypatch: pytest.MonkeyPatch, is_new: bool) -> None:
    monkeypatch.setattr(milvus, "MAX_MESSAGE_BYTES", 20_000)
    store = make(dimension=8)
    there = [f"old{number}" for number in range(5)] if is_new else [f"r{number:05}" for number in range(40, 45)]
    store.load(columns(["there" * 3000] * 5, there), True)
    before = store.get([f"{name}#0" for name in there], with_vectors=True)
    send, calls = store._client.upsert_columns, itertools.count(1)

    def broken(*message: Any) -> None:
        if next(calls) == 3:
            raise StoreError("Milvus does not answer.")
        send(*message)

    monkeypatch.setattr(store._client, "upsert_columns", broken)
    with pytest.raises(StoreError, match=r"^Milvus does not answer\.$"):
        store.load(columns(["new"] * 150), is_new)
    assert store.count() == 5
    after = store.get([f"{name}#0" for name in there], with_vectors=True)
    assert (after.texts, after.vectors.tolist()) == (before.texts, before.vectors.tolist())
    store.load(columns(["new"] * 150), is_new)  # and may be done again
    assert store.count() == (155 if is_new else 150)


def test_a_load_that_cannot_be_taken_back_says_so(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus, "MAX_MESSAGE_BYTES", 20_000)
    store = make(dimension=8)
    send, calls = store._client.upsert_columns, itertools.count(1)

    def gone(*message: Any) -> None:
        if next(calls) > 1:
            raise StoreError("Milvus does not answer.")
        send(*message)

    monkeypatch.setattr(store._client, "upsert_columns", gone)
    monkeypatch.setattr(store._client, "delete", gone)
    with pytest.raises(StoreError, match="Of 150 rows from 'r00000#0' to 'r00149#0' some are written, the others as b"):
        store.load(columns(["new"] * 150), True)
    assert 0 < store.count() < 150


def test_texts_that_do_not_fit_are_not_loaded(make: Make) -> None:
    store = make(dimension=8)
    store.load(columns(["가" * 21_845], ["가" * 21_844]), True)
    with pytest.raises(InputError, match="The text of 'r00001' has 65,536 bytes; at most 65,535 fit"):
        store.load(columns(["fits", "가" * 21_845 + "a"]), True)
    with pytest.raises(InputError, match=r"The id of '가+ has 65,537 bytes"):
        store.load(columns(["fits"], ["가" * 21_845]), True)
    assert store.count() == 1


def test_more_than_one_message_holds(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus, "MAX_MESSAGE_BYTES", 20_000)
    store = make(dimension=2)
    store.upsert(rows(np.ones((50, 2), np.float32)))
    store.upsert(rows(np.full((60, 2), 2, np.float32)))
    assert store.count() == 60
    assert store.get(["r00003"], with_vectors=True).vectors.tolist() == [[2, 2]]


def test_a_newer_format_is_refused(make: Make) -> None:
    store = make(name="later", dimension=2)
    store._client.upsert("munjang_stores", [{"id": "later", "record": '{"format": 2}', "vector": [0.0, 0.0]}])
    with pytest.raises(StoreError, match="format newer than 1"):
        make(name="later")


def test_k_beyond_what_milvus_gives(make: Make) -> None:
    store = make(dimension=2)
    with pytest.raises(InputError, match="16,384 rows at most, not 20,000"):
        store.search(np.ones((1, 2), np.float32), 20_000)


def test_nobody_answers() -> None:
    started = time.monotonic()
    with pytest.raises(StoreError, match="Milvus"):
        MilvusStore("milvus+http://me:very-secret@127.0.0.1:1", Schema(2), True, "default")
    assert time.monotonic() - started < 20


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for rest in ["", str(tmp_path / "file")]:
        with pytest.raises(InputError, match="followed by a folder"):
            MilvusStore(f"milvus-lite:{rest}", Schema(2), True, "default")


def test_a_folder_that_another_process_has_open(tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite")
    location = f"milvus-lite:{tmp_path}"
    store = MilvusStore(location, Schema(2), True, "default")
    code = f"from munjang.stores import open_store; open_store({location!r}, None, False)"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "StoreError: The folder" in other.stderr
    assert "another process has it open" in other.stderr
    store.close()


def test_literals() -> None:
    assert quoted('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'
    fields = {"n": "int"}
    assert expression(Compare("id", "!=", "x"), fields) == '((id < "x") or (id > "x"))'
    assert expression(Not(Like("id", "a")), fields) == '((id < "a") or (id >= "b"))'
    assert expression(Compare("n", "<", -(2**63)), fields) == '(id == "")'
    assert "exists" in expression(Compare("n", ">=", -(2**63)), fields)
