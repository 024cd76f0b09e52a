"""Similarities of texts and vectors, by the model's own function."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.vectors.similarity import SIMILARITIES
from tests.bi_encoder.given import TEXTS


def test_similarity(model: BiEncoder, vectors: np.ndarray) -> None:
    matrix = model.similarity(TEXTS, vectors)
    assert matrix.shape == (5, 5)
    np.testing.assert_allclose(matrix, SIMILARITIES["cosine"](vectors, vectors), atol=1e-5)
    assert isinstance(model.similarity("fox", "fox"), float)
    assert model.similarity("fox", "fox") == pytest.approx(1, abs=1e-5)
    assert model.similarity("fox", TEXTS).shape == (1, 5)
    assert model.similarity(pd.Series(TEXTS), pa.array(TEXTS)).shape == (5, 5)
    assert model.similarity(np.array(TEXTS), torch.from_numpy(vectors)).shape == (5, 5)
    assert model.similarity([], TEXTS).shape == (0, 5)
    np.testing.assert_allclose(model.similarity_pairwise(TEXTS, vectors), np.ones(5), atol=1e-5)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_models_own_similarity(make: Callable[..., Path], name: str, tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert", normalize=False))
    model.similarity_name = name
    vectors = model.encode(TEXTS)
    np.testing.assert_allclose(
        model.similarity(TEXTS, TEXTS), SIMILARITIES[name](vectors, vectors), rtol=1e-4, atol=1e-4
    )
    model.save(tmp_path / "saved")
    assert BiEncoder.load(tmp_path / "saved").similarity_name == name
    assert SentenceTransformer(str(tmp_path / "saved"), device="cpu").similarity_fn_name == name


def test_similarity_refused(model: BiEncoder, vectors: np.ndarray) -> None:
    for a, b, message in (
        (vectors, vectors[:, :5], "32 and 5 dimensions"),
        (vectors * np.nan, vectors, "Vector 0 of the first side holds NaN"),
        (vectors, [None, "a"], "second side|Item 0"),
    ):
        with pytest.raises(InputError, match=message):
            model.similarity(a, b)
    with pytest.raises(InputError, match="as many on both sides, not 5 and 2"):
        model.similarity_pairwise(TEXTS, TEXTS[:2])
    with pytest.raises(InputError, match=r"Unknown similarity 'cosin'.*Did you mean 'cosine'"):
        model.similarity_name = "cosin"
