"""Vectors in a plane."""

import numpy as np

from munjang.tasks.page import plane


def test_distances_along_a_line_are_kept() -> None:
    line = np.outer(np.arange(4), np.ones(3)).astype(np.float32)
    assert np.allclose(np.abs(np.diff(plane(line)[:, 0])), np.sqrt(3), atol=1e-5)


def test_one_vector_and_one_component() -> None:
    assert plane(np.ones((1, 5), np.float32)).tolist() == [[0, 0]]
    assert plane(np.ones((3, 1), np.float32)).tolist() == [[0, 0]] * 3
