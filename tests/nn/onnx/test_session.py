"""Rectangles: every text once and in order, with little padding."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.errors import CheckpointError, MissingExtra
from munjang.nn.onnx.session import (
    MAX_IGNORED_PADDING_SLOTS,
    MAX_PADDING_FRACTION,
    cut_rectangles,
    open_session,
    rectangles,
)
from munjang.text.packing import pack


@given(st.lists(st.integers(0, 300), max_size=60))
def test_rectangles_hold_every_text_once(lengths: list[int]) -> None:
    cuts = list(cut_rectangles(np.array(lengths, np.int64)))
    assert [place for first, last in cuts for place in range(first, last)] == list(range(len(lengths)))
    for first, last in cuts:
        part = lengths[first:last]
        slots = max(part) * len(part)
        assert slots - sum(part) <= max(MAX_PADDING_FRACTION * slots, MAX_IGNORED_PADDING_SLOTS)


def test_equal_and_near_texts_stay_together() -> None:
    assert list(cut_rectangles(np.array([30] * 70))) == [(0, 70)]
    assert list(cut_rectangles(np.array([40, 39, 39, 38, 38, 37]))) == [(0, 6)]
    assert list(cut_rectangles(np.array([200, 195, 20, 18, 4]))) == [(0, 2), (2, 5)]
    assert list(cut_rectangles(np.zeros(0, np.int64))) == []
    assert list(cut_rectangles(np.zeros(3, np.int64))) == [(0, 3)]


def test_parts_carry_what_belongs_to_them() -> None:
    lengths = np.array([50, 2, 1])
    ids = np.arange(53, dtype=np.int32)
    whole = pack(ids, lengths, types=ids % 2, skip=np.array([3, 1, 0]))
    first, second = rectangles(whole)
    assert (first.ids_T.tolist(), second.ids_T.tolist()) == (list(range(50)), [50, 51, 52])
    assert first.types_T is not None
    assert second.types_T is not None
    assert second.types_T.tolist() == [0, 1, 0]
    assert (second.lengths.tolist(), second.starts_B.tolist()) == ([2, 1], [0, 2, 3])
    assert second.skip is not None
    assert second.skip.tolist() == [1, 0]


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none\.onnx is missing, damaged or cut off"):
        open_session(tmp_path / "none.onnx", 1)


def test_without_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # what Python does for a package that is not there
    with pytest.raises(MissingExtra, match=r"needs onnxruntime: pip install 'munjang\[onnx\]'"):
        open_session(tmp_path / "model.onnx", 1)
