"""MaxSim: as by a loop over pairs of texts, whatever the blocks, by numpy and by torch."""

import numpy as np
import pytest
import torch

from munjang.errors import InputError
from munjang.types import Floats
from munjang.vectors import maxsim as module
from munjang.vectors.maxsim import EMPTY_SCORE, maxsim, maxsim_matrix, to_int8

RANDOM = np.random.default_rng(3)


def units(*lengths: int) -> list[Floats]:
    drawn = [RANDOM.normal(size=(length, 8)).astype(np.float32) for length in lengths]
    return [each / np.linalg.norm(each, axis=1, keepdims=True) for each in drawn]


QUERIES, DOCUMENTS = units(4, 1, 0, 7), units(5, 0, 1, 30, 12)


def score(query: Floats, document: Floats) -> float:
    return sum(max(d @ q for d in document) for q in query) if len(document) else EMPTY_SCORE


def naive(queries: list[Floats], documents: list[Floats]) -> Floats:
    return np.array([[score(query, document) for document in documents] for query in queries], np.float32)


@pytest.mark.parametrize("max_scores", [1, 40, 1 << 22])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_as_by_a_loop(max_scores: int, library: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BLOCK_SCORES", max_scores)
    found = maxsim_matrix([library(each) for each in QUERIES], [library(each) for each in DOCUMENTS])
    assert type(found) is type(library(QUERIES[0]))
    assert np.abs(np.asarray(found) - naive(QUERIES, DOCUMENTS))[:, [0, 2, 3, 4]].max() < 1e-5
    assert (np.asarray(found)[:, 1] == EMPTY_SCORE).all()
    assert np.asarray(found).dtype == np.float32


def test_one_query() -> None:
    assert np.array_equal(maxsim(QUERIES[0], DOCUMENTS), maxsim_matrix(QUERIES, DOCUMENTS)[0])
    assert maxsim(QUERIES[0], []).shape == (0,)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_int8_documents(library: type) -> None:
    codes = [library(to_int8(each)) for each in DOCUMENTS]
    exact, found = naive(QUERIES, DOCUMENTS), np.asarray(maxsim_matrix([library(each) for each in QUERIES], codes))
    tokens = np.array([max(len(query), 1) for query in QUERIES])[:, None]
    assert np.abs((found - exact) / tokens)[:, [0, 2, 3, 4]].max() < 0.01
    assert codes[0].itemsize == 1


def test_int8_needs_unit_vectors() -> None:
    with pytest.raises(InputError, match="unit length"):
        to_int8(np.full((1, 2), 3, np.float32))


@pytest.mark.parametrize(
    ("query", "documents", "message"),
    [
        (np.zeros(4, np.float32), [], r"shape \[4\]"),
        (np.zeros((2, 4), np.float32), [np.zeros((2, 5), np.float32)], "4 and of 5 dimensions"),
        (np.zeros((2, 4), np.float32), [torch.zeros(2, 4)], "all arrays or all tensors"),
        (np.zeros((2, 4), np.float32), ["text"], "not str"),
    ],
)
def test_refuses(query: object, documents: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        maxsim(query, documents)
