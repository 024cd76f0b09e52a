"""Real checkpoints beside sentence-transformers: vectors, and folders saved by either. `make test-full MODELS= DATA=`.

The part that runs everywhere takes all-MiniLM-L6-v2 from its package.
"""

import lzma
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder
from tests.texts import mixed

LEAST_COSINE = 0.99999


def lowest(a: Any, b: Any) -> float:
    """The smallest cosine of matching rows."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


def reference(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})


def of_mixed_lengths(path: Path, count: int) -> list[str]:
    """Sentences of a file: one, two, three, five or eight in a row."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in islice(file, 20 * count)]
    return [" ".join(lines[20 * row : 20 * row + (1, 1, 2, 3, 5, 8)[row % 6]]) for row in range(count)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_minilm(minilm: Path, tmp_path: Path) -> None:
    texts = mixed(20, longest=400)
    ours = BiEncoder.load(minilm)
    vectors = ours.encode(texts)
    assert lowest(vectors, reference(minilm).encode(texts)) >= LEAST_COSINE
    ours.save(tmp_path / "saved")
    assert lowest(vectors, reference(tmp_path / "saved").encode(texts)) >= LEAST_COSINE
    assert np.array_equal(BiEncoder.load(tmp_path / "saved").encode(texts), vectors)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm-l6", "mpnet-base", "e5-small"])
@pytest.mark.parametrize("language", ["en-sentences", "ko-reviews"])
def test_500_texts(real_models: Path, data_folder: Path, name: str, language: str, tmp_path: Path) -> None:
    texts = of_mixed_lengths(data_folder / "text" / f"{language}.txt.xz", 500)
    ours = BiEncoder.load(real_models / name)
    vectors = ours.encode(texts)
    theirs = reference(real_models / name)
    cosine = lowest(vectors, theirs.encode(texts))
    print(f"{name} {language}: smallest cosine {cosine:.7f} over {len(texts)} texts")
    assert cosine >= LEAST_COSINE
    ours.save(tmp_path / "ours")
    assert lowest(vectors[:50], reference(tmp_path / "ours").encode(texts[:50])) >= LEAST_COSINE
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    assert lowest(vectors[:50], BiEncoder.load(tmp_path / "theirs").encode(texts[:50])) >= LEAST_COSINE


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("language", ["en-sentences", "ko-reviews"])
def test_korean_albert(real_models: Path, data_folder: Path, pooling: str, language: str, tmp_path: Path) -> None:
    """A plain folder with vocab.txt only, which transformers would read with another tokenizer: saved by us first."""
    texts = of_mixed_lengths(data_folder / "text" / f"{language}.txt.xz", 500)
    ours = BiEncoder.load(real_models / "albert-kor", pooling=pooling)
    vectors = ours.encode(texts)
    ours.save(tmp_path / "saved")
    theirs = reference(tmp_path / "saved")
    assert theirs.tokenizer.tokenize("한국어 문장을 읽는다") != ["[UNK]"] * 3
    cosine = lowest(vectors, theirs.encode(texts))
    print(f"albert-kor {pooling} {language}: smallest cosine {cosine:.7f} over {len(texts)} texts")
    assert cosine >= LEAST_COSINE
