"""Similarities beside their formulas, pair by pair in float64."""

import math

import numpy as np
import pytest
import torch

from munjang.errors import InputError
from munjang.vectors.similarity import PAIRWISE, SIMILARITIES, check_unit, check_vectors, unit

NAIVE = {
    "dot": lambda a, b: float(a @ b),
    "cosine": lambda a, b: float(a @ b) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-12),
    "euclidean": lambda a, b: -math.dist(a, b),
    "manhattan": lambda a, b: -float(np.abs(a - b).sum()),
}
RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=(5, 7)).astype(np.float32)
B = np.concatenate([A[:2], A[1:2] + np.float32(1e-4), np.zeros((1, 7)), -A[:1]]).astype(np.float32)


def test_one_naive_version_each() -> None:
    assert set(SIMILARITIES) == set(PAIRWISE) == set(NAIVE)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_against_the_formula(name: str) -> None:
    expected = np.array([[NAIVE[name](a.astype(float), b.astype(float)) for b in B] for a in A])
    found = SIMILARITIES[name](A, B)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 3e-6
    rows = PAIRWISE[name](A, B)
    assert rows.dtype == np.float32
    assert np.abs(rows - np.diag(expected)).max() < 3e-6
    tensors = torch.from_numpy(A), torch.from_numpy(B)
    for table, wanted in ((SIMILARITIES, expected), (PAIRWISE, np.diag(expected))):
        scores = table[name](*tensors)
        assert scores.dtype == torch.float32
        assert np.abs(scores.numpy() - wanted).max() < 3e-6


@pytest.mark.parametrize("name", SIMILARITIES)
def test_higher_is_closer(name: str) -> None:
    vectors = unit(A)
    scores = SIMILARITIES[name](vectors, vectors)
    assert (scores.argmax(1) == np.arange(5)).all()


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("rows", [(0, 5), (5, 0), (0, 0)])
def test_no_rows(name: str, rows: tuple[int, int]) -> None:
    found = SIMILARITIES[name](A[: rows[0]], B[: rows[1]])
    assert found.shape == rows
    assert found.dtype == np.float32
    assert PAIRWISE[name](A[:0], B[:0]).shape == (0,)
    assert SIMILARITIES[name](torch.from_numpy(A[: rows[0]]), torch.from_numpy(B[: rows[1]])).shape == rows


def test_near_neighbours_keep_their_distance() -> None:
    a = np.full((1, 384), 10.0, np.float32)
    b = a.copy()
    b[0, 0] += 0.001
    assert SIMILARITIES["euclidean"](a, b)[0, 0] == pytest.approx(-0.001, rel=1e-3)
    tensors = torch.from_numpy(a), torch.from_numpy(b)
    assert SIMILARITIES["euclidean"](*tensors)[0, 0].item() == pytest.approx(-0.001, rel=1e-3)


def test_unit_vectors() -> None:
    assert np.allclose(np.linalg.norm(unit(A), axis=1), 1, atol=1e-6)
    assert (unit(np.zeros((1, 3), np.float32)) == 0).all()
    np.testing.assert_allclose(unit(torch.from_numpy(A)).numpy(), unit(A), atol=1e-6)
    assert (unit(torch.zeros(1, 3)) == 0).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0, float("nan")]], "Vector 0 of the left side holds NaN or infinity"),
        (np.array([[1.0, 2.0], [np.inf, 0.0]]), "Vector 1 of the left side"),
        (np.zeros((2, 2, 2)), r"not an array of shape \(2, 2, 2\)"),
        (3.0, r"not an array of shape \(\)"),
        ("text", "should be texts or an array of vectors, not str"),
        ([[1.0], [1.0, 2.0]], "should be texts or an array of vectors, not list"),
        ({"a": 1}, "not dict"),
        (None, "not NoneType|holds NaN|not an array of shape"),
    ],
)
def test_what_is_no_vector(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_vectors(given, "left side")


def test_one_vector_is_a_matrix_of_one() -> None:
    assert check_vectors([1, 2, 3], "side").shape == (1, 3)
    assert check_vectors(np.zeros((0, 4)), "side").shape == (0, 4)
    assert check_vectors(A.astype(np.float64), "side").dtype == np.float32


def test_unit_rows_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.vectors.similarity.BLOCK_ROWS", 2)
    assert np.array_equal(check_unit(A, "texts"), unit(A))
    with pytest.raises(InputError, match="Vector 3 of the texts holds NaN"):
        check_unit(np.where(np.arange(5)[:, None] == 3, np.nan, A), "texts")
    with pytest.raises(InputError, match="not an array of <U1"):
        check_unit(np.array([["a"]]), "texts")
