"""Pages: hostile texts stay texts, nothing is fetched, odd figures are drawn."""

import numpy as np

from munjang.tasks.page import flat, histogram, page, points, table

HOSTILE = '</title><script>alert(1)</script>"><img src=x onerror=alert(1)>\u202e\x00'


def test_hostile_texts_are_escaped() -> None:
    sections = [
        table(HOSTILE, [HOSTILE], [(HOSTILE, 1, 0.5)], HOSTILE),
        points(HOSTILE, np.eye(2, dtype=np.float32), np.array([0, -1]), [HOSTILE, HOSTILE], HOSTILE),
        histogram(HOSTILE, np.array([0.1, 0.2], np.float32)),
    ]
    found = page(HOSTILE, {HOSTILE: HOSTILE}, sections)
    assert "<script" not in found
    assert "<img" not in found
    assert "\u202e" not in found
    assert "\x00" not in found
    assert found.count("&lt;script&gt;") >= 8
    assert "Content-Security-Policy" in found
    assert "://" not in found  # nothing from elsewhere


def test_figures() -> None:
    assert histogram("x", np.zeros(0, np.float32)) == ""
    equal = histogram("x", np.full(5, 0.3, np.float32))
    assert equal.count("<rect") == 40
    assert (equal.count(": 5<"), equal.count(": 0<")) == (1, 39)
    assert points("x", np.zeros((0, 2), np.float32), np.zeros(0, np.int64), []) == ""
    assert "nan" not in points("x", np.zeros((3, 2), np.float32), np.zeros(3, np.int64), ["a", "b", "c"])
    assert flat(np.ones((1, 5), np.float32)).tolist() == [[0, 0]]
    line = np.outer(np.arange(4), np.ones(3)).astype(np.float32)
    assert np.allclose(np.abs(np.diff(flat(line)[:, 0])), np.sqrt(3), atol=1e-5)
