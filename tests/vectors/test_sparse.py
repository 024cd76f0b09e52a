"""Sparse vectors beside dense ones: rows, products, cuts."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.vectors.sparse import SparseVectors, join

RANDOM = np.random.default_rng(11)
DENSE = (RANDOM.random((9, 20)) * (RANDOM.random((9, 20)) < 0.3)).astype(np.float32)
DENSE[4] = 0
ROWS = SparseVectors.of_dense(DENSE)


def test_dense_and_back() -> None:
    assert np.array_equal(ROWS.to_dense(), DENSE)
    assert (len(ROWS), ROWS.shape, ROWS.nnz) == (9, (9, 20), int((DENSE > 0).sum()))
    assert np.array_equal(ROWS.to_scipy().toarray(), DENSE)
    assert np.allclose(ROWS.lengths, np.linalg.norm(DENSE, axis=1), atol=1e-6)


def test_rows_from_dictionaries_are_sorted() -> None:
    rows = SparseVectors.of([{7: 1.0, 2: 3.0}, {}, ([1, 0], [5.0, 6.0])], 8)
    assert rows.indptr.tolist() == [0, 2, 2, 4]
    assert rows.indices.tolist() == [2, 7, 0, 1]
    assert rows.values.tolist() == [3, 1, 6, 5]
    assert SparseVectors.of([], 8).shape == (0, 8)


def test_dot_is_that_of_dense_rows() -> None:
    other = (RANDOM.normal(size=(4, 20)) * (RANDOM.random((4, 20)) < 0.5)).astype(np.float32)
    assert np.allclose(ROWS.dot(SparseVectors.of_dense(other)), DENSE @ other.T, atol=1e-5)
    assert ROWS.dot(SparseVectors.of([], 20)).shape == (9, 0)


def test_taking_rows() -> None:
    assert np.array_equal(ROWS.take(np.array([8, 0, 4, 0])).to_dense(), DENSE[[8, 0, 4, 0]])
    assert np.array_equal(ROWS[2:6].to_dense(), DENSE[2:6])
    indices, values = ROWS[-1]
    assert np.array_equal(DENSE[-1][indices], values)
    assert [len(values) for _, values in ROWS] == np.diff(ROWS.indptr).tolist()
    with pytest.raises(IndexError):
        ROWS[9]


def test_top_keeps_the_greatest() -> None:
    cut = ROWS.top(2).to_dense()
    for row, whole in zip(cut, DENSE, strict=True):
        assert sorted(row[row > 0]) == sorted(whole[whole > 0])[-2:]
    with pytest.raises(InputError, match="at least 1"):
        ROWS.top(0)


def test_join() -> None:
    assert np.array_equal(join([ROWS[:3], ROWS[3:]], 20).to_dense(), DENSE)
    assert join([], 20).shape == (0, 20)


@pytest.mark.parametrize(
    ("indptr", "indices", "dim", "message"),
    [([0, 2], [1], 5, "indptr ends"), ([1, 1], [], 5, "ascend"), ([0, 1], [5], 5, "between 0 and 4")],
)
def test_refuses_what_is_not_csr(indptr: list[int], indices: list[int], dim: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SparseVectors(np.array(indptr), np.array(indices, np.int32), np.ones(len(indices), np.float32), dim)


def test_refuses_other_dimensions() -> None:
    with pytest.raises(InputError, match="20 and 5"):
        ROWS.dot(SparseVectors.of([], 5))
