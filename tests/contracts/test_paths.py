"""Every path from texts to vectors beside sentence-transformers: several draws of the weights, every length."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder
from munjang.checkpoint.export import export_onnx
from munjang.nn.cpu import can_pack
from tests.texts import ENGLISH

SEEDS = (3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (11, 29)))
NUM_WORDS = range(99)  # with the two around a text: from the shortest to the 100 tokens that the tiny models read
# Smallest cosine. Exact paths differ by rounding; tiny wide networks suffer far more from few bits than real ones do.
PATHS = {
    "float32": ({"dtype": "float32"}, 1 - 1e-6),
    "float32, one thread": ({"dtype": "float32", "threads": 1}, 1 - 1e-6),
    "bfloat16": ({"dtype": "bfloat16"}, 0.99),
    "int8": ({"dtype": "int8"}, 0.9),
}


@pytest.fixture(scope="module", params=SEEDS)
def drawn(request: pytest.FixtureRequest, make: Callable[..., Path]) -> tuple[Path, list[str], Any]:
    """A model, texts of every length it reads in some order, and their vectors of length one."""
    folder, random = make("bert", seed=request.param), np.random.default_rng(request.param)
    tokenizer = BiEncoder.load(folder, "cpu").tokenizer
    words = [word for word in sorted(set(ENGLISH)) if tokenizer([word]).lengths[0] == 3]
    texts = [" ".join(random.choice(words, number)) for number in random.permutation(NUM_WORDS)]
    lengths = tokenizer(texts).lengths
    assert sorted(lengths) == list(range(2, tokenizer.max_length + 1))
    return folder, texts, SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)


def worst(model: BiEncoder, texts: list[str], theirs: Any) -> float:
    """Smallest cosine, all texts together and each alone."""
    together = model.encode(texts, normalize=True)
    alone = np.stack([model.encode(text, normalize=True) for text in texts])
    return float(min((together * theirs).sum(1).min(), (alone * theirs).sum(1).min()))


@pytest.mark.parametrize("name", PATHS)
def test_torch(drawn: tuple[Path, list[str], Any], name: str) -> None:
    folder, texts, theirs = drawn
    options, least = PATHS[name]
    if options["dtype"] == "int8" and not can_pack(torch.int8):
        pytest.skip("this CPU or torch has no 8-bit products")
    assert worst(BiEncoder.load(folder, "cpu", **options), texts, theirs) > least  # type: ignore[arg-type]


def test_int8_by_rows(drawn: tuple[Path, list[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if not can_pack(torch.int8):
        pytest.skip("this CPU or torch has no 8-bit products")
    monkeypatch.setenv("MUNJANG_INT8", "dynamic")
    folder, texts, theirs = drawn
    assert worst(BiEncoder.load(folder, "cpu", "int8"), texts, theirs) > 0.9


@pytest.mark.parametrize(("dtype", "least"), [("float32", 1 - 1e-6), ("int8", 0.9)])
def test_onnx(drawn: tuple[Path, list[str], Any], dtype: str, least: float, tmp_path: Path) -> None:
    folder, texts, theirs = drawn
    export_onnx(BiEncoder.load(folder, "cpu", "float32").model, tmp_path / "onnx", dtype)
    assert worst(BiEncoder.load(tmp_path / "onnx"), texts, theirs) > least
