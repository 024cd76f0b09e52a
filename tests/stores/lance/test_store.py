import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from munjang.stores import open_store
from munjang.stores.base import Rows, Schema, StoreError
from munjang.stores.filters import Compare, Like, matches
from munjang.vectors.similarity import cosine
from tests.stores.rows import make_rows
from tests.stores.trees import WORDS

pytest.importorskip("lancedb")
from munjang.stores.lance import store as lance
from munjang.stores.lance import table

ROOT = Path(__file__).parents[3]
SCHEMA = Schema(8, fields={"word": "text"})


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Python of its own, with the names that these tests use."""
    names = "import sys; from munjang.stores import open_store; from tests.stores.rows import make_rows\n"
    command = [sys.executable, "-c", names + code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_prefixes_at_the_edges(tmp_path: Path) -> None:
    words = [*WORDS, "\U0010ffff", "\U0010ffffa", "\ud7ff", "\ud7ffz", "\ue000", "a\U0010ffffb", "b"]
    store, rows = open_store(str(tmp_path), SCHEMA, create=True), make_rows(len(words), SCHEMA)
    store.add(type(rows)(**{**vars(rows), "metadata": [{"word": word} for word in words]}))
    for prefix in filter(None, words):
        tree = Like("word", prefix)
        assert store.count(tree) == sum(matches(tree, {"word": word}) for word in words), prefix


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Both add, replace the same rows and delete, at the same time."""
    open_store(str(tmp_path), SCHEMA, create=True)
    code = """
store = open_store(sys.argv[1], None, create=False)
for turn in range(8):
    store.add(make_rows(10, store.schema, prefix=f"{sys.argv[2]}-{turn}-"))
    store.upsert(make_rows(5, store.schema, prefix="shared"))
    store.delete([f"{sys.argv[2]}-{turn}-document0"])
"""
    workers = [start(code, tmp_path, name) for name in ("a", "b")]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    store = open_store(str(tmp_path), None, create=False)
    assert store.count() == 5 + 2 * 8 * 8
    ids = [row_id for rows in store.scan() for row_id in rows.ids]
    assert len(set(ids)) == len(ids) == store.count()


def test_a_killed_writer_leaves_whole_batches(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), SCHEMA, create=True)
    code = """
store = open_store(sys.argv[1], None, create=False)
for turn in range(1000):
    store.add(make_rows(200, store.schema, prefix=f"{turn}-"))
    print(turn, flush=True)
"""
    worker = start(code, tmp_path)
    assert worker.stdout is not None
    done = [int(worker.stdout.readline()) for _ in range(3)]
    time.sleep(0.02)
    os.kill(worker.pid, signal.SIGKILL)
    done += [int(line) for line in worker.stdout.read().split()]
    worker.wait()
    count = store.count()
    assert count % 200 == 0
    assert len(done) * 200 <= count <= (len(done) + 1) * 200
    store.add(make_rows(1, SCHEMA, prefix="after"))  # the lock went with its process
    assert store.count() == count + 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "can't be read"),
        ("{}", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1, "schema": {"nope": 1}}', "is damaged"),
        ('{"format": 99}', "written by a newer Munjang .format 99, known is 1."),
    ],
)
def test_a_record_that_can_not_be_used(tmp_path: Path, content: str, message: str) -> None:
    open_store(str(tmp_path), SCHEMA, create=True)
    (tmp_path / "default.json").write_text(content)
    with pytest.raises(StoreError, match=message):
        open_store(str(tmp_path), SCHEMA, create=True)


def test_a_damaged_table(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), SCHEMA, create=True)
    store.add(make_rows(5, SCHEMA))
    for path in (tmp_path / "default.lance" / "_versions").iterdir():
        path.write_bytes(b"nothing")
    with pytest.raises(StoreError, match="can't be opened"):
        open_store(str(tmp_path), None, create=False)


def test_a_table_that_is_gone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), SCHEMA, create=True)
    (tmp_path / "default.lance").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="gone or damaged"):
        store.count()
    with pytest.raises(StoreError, match="can't be opened"):
        open_store(str(tmp_path), SCHEMA, create=True)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        open_store(str(tmp_path / "file"), SCHEMA, create=True)


def test_a_run_that_died_while_making_the_store(tmp_path: Path) -> None:
    open_store(str(tmp_path), SCHEMA, create=True)
    (tmp_path / "default.json").unlink()
    store = open_store(str(tmp_path), Schema(4), create=True)
    assert (store.count(), store.schema.dimension) == (0, 4)


def test_a_run_that_died_while_adding_fields(tmp_path: Path) -> None:
    """Columns that no field has do no harm."""
    store = open_store(str(tmp_path), SCHEMA, create=True)
    store.add(make_rows(2, SCHEMA))
    with store._writing() as table:
        table.add_columns({"field_1": "cast(null as bigint)", "has_1": "false"})
    store.add(make_rows(2, SCHEMA, prefix="new"))
    store.upsert(make_rows(3, SCHEMA, prefix="new"))
    store.extend({"other": "text"})
    store.upsert(make_rows(4, store.schema, prefix="new"))
    assert store.count() == 6


@pytest.mark.parametrize("write", ["add", "upsert", "compact", "extend"])
def test_a_disk_that_is_full_at_the_last_bytes_of_a_file(tmp_path: Path, write: str) -> None:
    """LanceDB commits the file without its end and says nothing; nobody could read the table any more."""
    resource = pytest.importorskip("resource")
    schema = Schema(64, fields={"year": "int"})

    def written(folder: str) -> tuple[Any, Any]:
        store = open_store(str(tmp_path / folder), schema, True)
        for first in range(0, 300, 100):
            store.add(make_rows(100, schema, seed=first, prefix=f"{first}."))
        more = make_rows(200, schema, seed=9, prefix="300." if write == "add" else "0.")
        calls = {"compact": store.compact, "extend": lambda: store.extend({"month": "int"})}
        return store, calls.get(write, lambda: getattr(store, write)(more))

    def largest(folder: str, before: set[Path]) -> int:
        files = (tmp_path / folder).rglob("*.lance")
        return max(path.stat().st_size for path in files if path.is_file() and path not in before)

    _, call = written("whole")
    before = {*(tmp_path / "whole").rglob("*")}
    call()
    limit, (_, most) = largest("whole", before) - 9, resource.getrlimit(resource.RLIMIT_FSIZE)
    store, call = written("full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        with pytest.raises(StoreError, match="make room"):
            call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert sum(len(rows) for rows in store.scan()) == 300
    assert store.schema.fields == {"year": "int"}
    call()
    assert sum(len(rows) for rows in open_store(str(tmp_path / "full"), None, False).scan()) >= 300


def test_many_small_adds_are_tidied_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "MAX_FRAGMENTS", 5)
    store = open_store(str(tmp_path), SCHEMA, create=True)
    for turn in range(20):
        store.add(make_rows(2, SCHEMA, prefix=f"{turn}-"))
    assert store.info()["fragments"] <= 6
    assert store.count() == 40


def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    """While another thread holds the lock of those who write, and longer than any search takes."""
    store = open_store(str(tmp_path), SCHEMA, create=True)
    store.add(make_rows(5, SCHEMA))
    found: list[int] = []
    with store._writing():
        reader = threading.Thread(target=lambda: found.append(len(store.search(np.ones((1, 8), np.float32), 9)[0].ids)))
        reader.start()
        reader.join(timeout=20)
        assert found == [5]


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("vectors", ["float32", "float16", "int8", "binary"])
def test_with_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str, metric: str) -> None:
    """Scores stay exact, rows that came later are found, and a narrow filter gives all that fit."""
    monkeypatch.setattr(table, "MIN_INDEX_ROWS", 1000)
    monkeypatch.setattr(table, "MIN_KEY_ROWS", 1000)
    schema = Schema(16, metric=metric, vectors=vectors, fields={"part": "int"})
    store, rows = open_store(str(tmp_path), schema, create=True), make_rows(3000, schema)
    store.add(type(rows)(**{**vars(rows), "metadata": [{"part": row % 100} for row in range(3000)]}))
    assert "vector" in store.compact()["indexes_built"]
    assert store.compact()["indexes_built"] == []
    later = make_rows(50, schema, seed=9, prefix="later")
    store.add(type(later)(**{**vars(later), "metadata": [{"part": 7}] * 50}))
    full = np.asarray(later.vectors if later.full_vectors is None else later.full_vectors, np.float32)
    for query, row_id in list(zip(full, later.ids, strict=True))[:5]:
        assert row_id in store.search(query[None], 5)[0].ids
    found = store.search(full[:1], 100, Compare("part", "=", 7))[0]
    assert len(set(found.ids)) == 80
    assert len(store.search(full[:1], 4000)[0].ids) == 3050
    assert list(store.get([later.ids[3], "r7"]).ids) == [later.ids[3], "r7"]
    if metric == "cosine":
        kept = store.get(found.ids, with_vectors=True)
        stored = np.asarray(kept.vectors if kept.full_vectors is None else kept.full_vectors, np.float32)
        np.testing.assert_allclose(found.scores, cosine(full[:1], stored)[0], atol=1e-5)


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of 1,500 rows with an index of their vectors."""
    monkeypatch.setattr(table, "MIN_INDEX_ROWS", 1000)
    store = open_store(str(tmp_path), SCHEMA, create=True)
    store.add(make_rows(1500, SCHEMA))
    assert "vector" in store.compact()["indexes_built"]
    return tmp_path


def changed(rows: Rows, **columns: Any) -> Rows:
    return type(rows)(**{**vars(rows), **columns})


def test_rows_of_hits_are_those_of_now(indexed: Path) -> None:
    """A search keeps the rows that it read; what others change meanwhile is seen all the same."""
    store, other = (open_store(str(indexed), None, create=False) for _ in range(2))
    query = np.ones((1, 8), np.float32)
    first, second, *rest = store.search(query, 10)[0].ids
    assert store.get([second, first]) == other.get([second, first])
    assert list(store.get([first, "nobody"]).ids) == [first]
    before = other.get([first], with_vectors=True)
    other.upsert(changed(before, texts=["another text"]))
    assert list(store.get([first, second]).texts) == ["another text", *other.get([second]).texts]
    other.remove([second])
    assert list(store.get([first, second, *rest]).ids) == [first, *rest]
    again = store.search(query, 9)[0].ids
    assert second not in again
    assert list(store.get(again).ids) == again


def test_equal_vectors_with_an_index_go_by_id(indexed: Path) -> None:
    store = open_store(str(indexed), None, create=False)
    many, query = make_rows(30, SCHEMA, seed=3, prefix="same"), np.linspace(-1, 1, 8, dtype=np.float32)[None]
    store.add(changed(many, vectors=np.repeat(query, 30, axis=0)))
    found = store.search(query, 7)[0]
    assert found.ids == sorted(many.ids)[:7]
    np.testing.assert_allclose(found.scores, 1, atol=1e-6)


def test_searching_while_rows_move(indexed: Path) -> None:
    """Rows get other places between being found and being read, again and again: all hits are there, with their scores.

    Which ones they are may change a little: what was written since the index was built is searched exactly.
    """
    store, other = (open_store(str(indexed), None, create=False) for _ in range(2))
    query, failures = np.ones((1, 8), np.float32), list[BaseException]()
    rows = other.get(store.search(query, 50)[0].ids, with_vectors=True)
    scores = cosine(query, np.asarray(make_rows(1500, SCHEMA).vectors, np.float32))[0]

    def move() -> None:
        try:
            for _ in range(6):
                other.upsert(rows)
                store.count()  # sees the change, and with it so does a search that has begun
                other.compact()
                store.count()
        except BaseException as error:
            failures.append(error)

    mover = threading.Thread(target=move)
    mover.start()
    while mover.is_alive():
        found = store.search(query, 20)[0]
        assert len(set(found.ids)) == 20
        np.testing.assert_allclose(found.scores, [scores[int(row_id[1:])] for row_id in found.ids], atol=1e-5)
        assert list(store.get(found.ids).ids) == found.ids
    mover.join()
    assert not failures


def test_random_texts_never_break_out(tmp_path: Path) -> None:
    random = Random(5)
    pieces = ["'", '"', "\\", "`", ";", "--", "%", "_", "(", ")", "\n", " or ", "1=1", "한", "$1", "{}", "\x01", "/*"]
    ids = sorted({"".join(random.choices(pieces, k=random.randint(1, 6))) for _ in range(200)})
    store, rows = open_store(str(tmp_path), SCHEMA, create=True), make_rows(len(ids), SCHEMA)
    store.add(type(rows)(**{**vars(rows), "ids": ids, "document_ids": ids}))
    for row_id in ids[::10]:
        assert store.count(Compare("id", "=", row_id)) == 1
        assert store.delete([row_id]) == 1
    assert store.count() == len(ids) - len(ids[::10])


def test_the_record_is_plain_json(tmp_path: Path) -> None:
    open_store(str(tmp_path), Schema(8, facts={"모형": "x"}), create=True)
    content = json.loads((tmp_path / "default.json").read_text(encoding="utf-8"))
    assert (content["format"], content["schema"]["facts"]) == (1, {"모형": "x"})
