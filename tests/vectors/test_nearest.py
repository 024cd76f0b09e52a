"""Nearest rows: as by sorting everything, whatever the blocks, by numpy and by torch."""

import numpy as np
import pytest
import torch

from munjang.types import Floats
from munjang.vectors import nearest as module
from munjang.vectors.nearest import kth_best, nearest, nearest_in_blocks, top_k
from munjang.vectors.similarity import SIMILARITIES

RANDOM = np.random.default_rng(5)
QUERIES = RANDOM.normal(size=(23, 6)).astype(np.float32)
CANDIDATES = RANDOM.normal(size=(57, 6)).astype(np.float32)
DEVICES = [None, torch.device("cpu")]
BLOCKS = [(100, 1 << 20), (7, 7 * 10), (1, 1)]


@pytest.mark.parametrize("device", DEVICES, ids=["numpy", "torch"])
@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize(("block_rows", "block_scores"), BLOCKS)
def test_as_the_full_matrix(
    name: str, block_rows: int, block_scores: int, device: torch.device | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", block_rows)
    monkeypatch.setattr(module, "BLOCK_SCORES", block_scores)
    pairs = np.unique(RANDOM.integers(0, (23, 57), (80, 2)), axis=0)
    matrix = SIMILARITIES[name](QUERIES, CANDIDATES)
    matrix[pairs[:, 0], pairs[:, 1]] = -np.inf
    scores, rows = nearest(QUERIES, CANDIDATES, 9, name, (pairs[:, 0], pairs[:, 1]), device)
    assert np.array_equal(rows, np.argsort(-matrix, axis=1)[:, :9])
    assert np.abs(scores - np.take_along_axis(matrix, rows, 1)).max() < 1e-5
    assert (scores.dtype, rows.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("block_scores", [1, 50, 1 << 24])
def test_numpy_takes_the_first_of_equal_scores(name: str, block_scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_SCORES", block_scores)
    random = np.random.default_rng(0)
    a = random.integers(-2, 3, (7, 3)).astype(np.float32)
    b = random.integers(-2, 3, (20, 3)).astype(np.float32)  # whole numbers: many ties
    b[10:] = b[:10]  # equal to the last bit, in every block
    for depth in (1, 5, 50):
        scores, rows = nearest(a, b, depth, name)
        assert scores.shape == rows.shape == (7, min(depth, 20))
        naive = [sorted(range(20), key=lambda row: (-score_of[row], row)) for score_of in SIMILARITIES[name](a, b)]
        if block_scores > 1:  # the product of one row may round differently
            assert rows.tolist() == [order[:depth] for order in naive]
        for first, second in zip(rows[:, :-1].ravel(), rows[:, 1:].ravel(), strict=True):
            assert first + 10 != second or first < second


@pytest.mark.parametrize("device", DEVICES, ids=["numpy", "torch"])
def test_fewer_than_asked_for(device: torch.device | None) -> None:
    scores, rows = nearest(QUERIES, CANDIDATES[:3], 10, "dot", device=device)
    assert scores.shape == rows.shape == (23, 3)
    everything = np.repeat(np.arange(23), 3), np.tile(np.arange(3), 23)
    assert (nearest(QUERIES, CANDIDATES[:3], 10, "dot", everything, device).scores_AK == -np.inf).all()
    assert nearest(QUERIES[:0], CANDIDATES, 2, device=device).rows_AK.shape == (0, 2)
    assert nearest(QUERIES, CANDIDATES[:0], 2, device=device).rows_AK.shape == (23, 0)


@pytest.mark.parametrize("block_rows", [4, 100])
def test_any_function_of_blocks(block_rows: int) -> None:
    def score(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b.T).abs()

    blocks = torch.split(torch.from_numpy(CANDIDATES), 10)  # the last one has fewer rows than are asked for
    scores, rows = nearest_in_blocks(torch.from_numpy(QUERIES), blocks, 8, score, block_rows=block_rows)
    matrix = np.abs(QUERIES @ CANDIDATES.T)
    assert np.array_equal(rows.numpy(), np.argsort(-matrix, axis=1)[:, :8])
    np.testing.assert_allclose(scores.numpy(), np.take_along_axis(matrix, rows.numpy(), 1), rtol=1e-5)


@pytest.mark.parametrize("k", [1, 3, 20, 50])
def test_top_k(k: int) -> None:
    scores: Floats = np.random.default_rng(1).integers(0, 5, 20).astype(np.float32)
    expected = sorted(range(20), key=lambda place: (-scores[place], place))[:k]
    assert top_k(scores, k).tolist() == expected
    assert kth_best(scores, len(expected)) == scores[expected[-1]]


def test_top_k_of_nothing_and_of_nan() -> None:
    assert top_k(np.zeros(0, np.float32), 3).tolist() == []
    assert len(top_k(np.array([np.nan, 1, 2, np.nan], np.float32), 3)) == 3  # in any order, but all of them
