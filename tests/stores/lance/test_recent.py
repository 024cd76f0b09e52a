"""Rows that a search has read: of one state of the table, and not too many."""

import pytest

pytest.importorskip("lancedb")
from munjang.stores.lance import store
from munjang.stores.lance.store import Recent


def test_rows_of_one_stamp_only() -> None:
    recent = Recent()
    recent.put((1,), ["a", "b"], ["A", "B"], ["x", "y"])
    assert recent.get((1,), ["b", "a", "b"]) == [("B", "y"), ("A", "x"), ("B", "y")]
    assert recent.get((1,), []) == []
    assert recent.get((1,), ["a", "c"]) is None
    assert recent.get((2,), ["a"]) is None
    recent.put((2,), ["c"], ["C"], ["z"])
    assert recent.get((2,), ["a"]) is None
    assert recent.get((2,), ["c"]) == [("C", "z")]


def test_the_oldest_rows_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_RECENT_ROWS", 3)
    recent = Recent()
    for name in ("a", "b", "c", "a", "d"):
        recent.put((), [name], [name], [""])
    assert [recent.get((), [name]) is None for name in "abcd"] == [False, True, False, False]


def test_long_texts_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_RECENT_CHARS", 10)
    recent = Recent()
    recent.put((), ["a", "b"], ["1234", "5678"], ["", "90"])
    assert recent.get((), ["a", "b"]) is not None
    recent.put((), ["c"], ["1"], [""])
    assert recent.get((), ["a"]) is None
    assert recent.get((), ["b", "c"]) is not None
    recent.put((), ["d"], ["12345678901"], [""])
    assert recent.get((), ["d"]) is None
    assert recent._num_chars == 0
