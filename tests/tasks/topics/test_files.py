"""A topic model comes back as it was; damaged and foreign folders are refused by name."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from munjang.errors import CheckpointError, InputError
from munjang.tasks.topics.changes import merge_topics
from munjang.tasks.topics.files import load_topics, save_topics
from tests.tasks.topics.made import found, made


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_topics(found(), tmp_path / "topics")
    return tmp_path / "topics"


def test_it_comes_back(saved: Path) -> None:
    before, after = found(), load_topics(saved)
    assert (after.topics, after.texts, after.naming) == (before.topics, before.texts, before.naming)
    np.testing.assert_array_equal(after.topic_of_N, before.topic_of_N)
    np.testing.assert_array_equal(after.sums_TD, before.sums_TD)
    vectors = made(2)[1]
    assert after.assign(vectors).topic_of_N.tolist() == before.assign(vectors).topic_of_N.tolist()
    assert merge_topics(after, [[0, 1]]).topics == merge_topics(before, [[0, 1]]).topics


def test_it_replaces_its_own_kind_only(saved: Path, tmp_path: Path) -> None:
    save_topics(merge_topics(found(), [[0, 1]]), saved)
    assert len(load_topics(saved).topics) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["topics"]
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="holds no topics"):
        save_topics(found(), tmp_path / "other")


def test_a_save_that_fails_leaves_the_older_one(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("munjang.checkpoint.atomic.EXCHANGE_CALLS", {})  # as on a system that can't swap two folders
    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        save_topics(merge_topics(found(), [[0, 1]]), saved)
    monkeypatch.undo()
    assert load_topics(saved).topics == found().topics
    assert [path.name for path in tmp_path.iterdir()] == ["topics"]


def test_odd_texts_survive(tmp_path: Path) -> None:
    from dataclasses import replace

    texts = ["a\nb", "\ud800", "\u2028</script>", *found().texts[3:]]
    save_topics(replace(found(), texts=texts), tmp_path / "odd")
    assert load_topics(tmp_path / "odd").texts == texts


def drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:40])


def change(key: str, value: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        facts = json.loads((folder / "topics.json").read_text("utf-8"))
        (folder / "topics.json").write_text(json.dumps({**facts, key: value}), "utf-8")

    return apply


def arrays(**changed: np.ndarray) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "vectors.safetensors"
        save_file({**load_file(path), **changed}, path)

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop("texts.jsonl"), "has no texts.jsonl"),
        (cut("vectors.safetensors"), "is damaged"),
        (cut("topics.json"), "is damaged"),
        (cut("texts.jsonl"), "is damaged|not of one save"),
        (change("format", "pickle"), "not of the format"),
        (change("topics", []), "not of one save"),
        (change("topics", [3]), "is damaged"),
        (change("naming", {"num_words": 3}), "is damaged"),
        (arrays(topic_of=np.full(62, 7)), "not there"),
        (arrays(topic_of=np.zeros(62, np.int32)), "topic_of is not a finite array of int64"),
        (arrays(sums=np.full((3, 8), np.nan, np.float32)), "sums is not a finite array"),
        (arrays(similarity=np.zeros(2, np.float32)), "not of one save"),
    ],
)
def test_damage_is_named(saved: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(saved)
    with pytest.raises(CheckpointError, match=message):
        load_topics(saved)


def test_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a folder of topics"):
        load_topics(tmp_path / "nothing")
