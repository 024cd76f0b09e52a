"""Vectors of fewer dimensions, by PCA the same in every run; UMAP where it is installed."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.topics.reduce import reduce


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32) * np.linspace(3, 0.1, 12, dtype=np.float32)


def test_rows_are_at_length_one_for_clustering(vectors: np.ndarray) -> None:
    reduced = reduce(vectors, "pca", 5)
    assert reduced.shape == (40, 5)
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(reduced, reduce(vectors, "pca", 5))


def test_nothing_is_reduced_to_what_it_has(vectors: np.ndarray) -> None:
    assert reduce(vectors, "pca") is vectors  # 50 are asked for, there are 12
    assert reduce(vectors, "none") is vectors


@pytest.mark.parametrize(
    ("how", "dimension", "message"),
    [("tsne", None, "Unknown way to reduce 'tsne'"), ("pca", 0, "at least 1"), ("none", 3, "leave dimension out")],
)
def test_bad_settings_are_refused(vectors: np.ndarray, how: str, dimension: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reduce(vectors, how, dimension)


@pytest.mark.slow  # numba compiles for half a minute
def test_umap_keeps_groups_apart() -> None:
    pytest.importorskip("umap", reason="pip install 'munjang[umap]'")
    random = np.random.default_rng(0)
    centres = np.repeat(np.eye(8, dtype=np.float32)[:2], 30, axis=0)
    points = reduce(centres + random.normal(scale=0.05, size=(60, 8)).astype(np.float32), "umap", 2)
    assert points.shape == (60, 2)
    apart = np.linalg.norm(points[:30].mean(0) - points[30:].mean(0))
    assert apart > 3 * max(points[:30].std(), points[30:].std())
    with pytest.raises(InputError, match="at least 7 texts"):
        reduce(np.eye(4, dtype=np.float32), "umap", 5)
