"""Principal components: those of scikit-learn, whatever the blocks."""

import numpy as np
import pytest

from munjang.vectors.principal import principal_components


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32) * np.linspace(3, 0.1, 12, dtype=np.float32)


def test_components_are_those_of_scikit_learn(vectors: np.ndarray) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    theirs = decomposition.PCA(4, svd_solver="full").fit_transform(vectors)
    ours = principal_components(vectors, 4)
    signs = np.sign((ours * theirs).sum(0))  # which are free
    np.testing.assert_allclose(ours, theirs * signs, atol=1e-4)


def test_blocks_give_the_same(vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = principal_components(vectors, 4)
    monkeypatch.setattr("munjang.vectors.principal.BLOCK_ROWS", 7)
    np.testing.assert_allclose(principal_components(vectors, 4), whole, atol=1e-4)


def test_doubles_stay_doubles(vectors: np.ndarray) -> None:
    found = principal_components(vectors.astype(np.float64), 30)
    assert found.shape == (40, 12)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found[:, :4], principal_components(vectors, 4), atol=1e-4)
