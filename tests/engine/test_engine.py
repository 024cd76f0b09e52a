"""One text, one vector: the same alone, in a batch, in another order or thread; and memory that stays flat."""

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder, checkpoint
from munjang.nn.network import SentenceNetwork, StaticEncoder
from munjang.text.tokenizer import Tokenizer
from munjang.types import TokenIds
from munjang.vectors.similarity import unit
from tests.models import make_tokenizer
from tests.texts import mixed

TEXTS = [*mixed(60, longest=25), "", " ", "one", "하나"]
TOLERANCE = 2e-6  # in any component of a unit vector


def spread(model: BiEncoder, texts: list[str]) -> float:
    """Largest difference in any component between all the ways to get the vector of a text."""
    whole = model.encode(texts, normalize=True)
    order = np.random.default_rng(0).permutation(len(texts))
    found = [
        np.stack([model.encode(text, normalize=True) for text in texts]),
        model.encode([texts[row] for row in order], normalize=True)[np.argsort(order)],
        np.concatenate(list(model.encode(iter(texts), chunk_rows=7, normalize=True))),
        model.encode(model.tokenize(texts), normalize=True),
        *(model.encode(texts, normalize=True, batch_tokens=budget) for budget in (1, 50, 333, 10**6)),
    ]
    thread = threading.Thread(target=lambda: found.append(model.encode(texts[::-1], normalize=True)[::-1]))
    thread.start()
    thread.join()
    assert len(found) == 9
    return max(float(np.abs(each - whole).max()) for each in found)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert", "albert", "qwen3"])
def test_one_text_one_vector(make: Callable[..., Path], family: str) -> None:
    for threads in (1, 2):
        assert spread(BiEncoder.load(make(family), threads=threads), TEXTS) <= TOLERANCE


def test_one_text_one_vector_in_a_real_model(minilm: Path) -> None:
    few, many = BiEncoder.load(minilm, threads=1), BiEncoder.load(minilm, threads=2)
    texts = TEXTS[::5]
    assert spread(many, texts) <= TOLERANCE
    assert np.abs(few.encode(texts) - many.encode(texts)).max() <= TOLERANCE


def test_bfloat16_on_a_cpu(minilm: Path) -> None:
    """Measured on MiniLM-L6 (2026-11-15, AVX2): minimum cosine 0.99986, 0.0036 in the worst component, no spread."""
    texts = TEXTS[::5]
    exact, model = BiEncoder.load(minilm).encode(texts), BiEncoder.load(minilm, dtype="bfloat16")
    found = model.encode(texts)
    assert found.dtype == np.float32
    assert (found * exact).sum(1).min() > 0.9995
    assert np.abs(found - exact).max() < 0.01
    assert np.abs(np.stack([model.encode(text) for text in texts]) - found).max() < 0.002
    assert all(state.dtype == np.float32 for state in model.encode(texts[:2], output="tokens"))


def test_float16_on_a_cpu(tiny_bert: Path) -> None:
    exact = BiEncoder.load(tiny_bert).encode(TEXTS)
    assert np.abs(BiEncoder.load(tiny_bert, dtype="float16").encode(TEXTS) - exact).max() < 0.02


# Static embeddings: the smallest model there is


def static_model() -> BiEncoder:
    tokenizer = Tokenizer(make_tokenizer("wordpiece"), has_special=False)
    weight = torch.randn(tokenizer.vocab_size, 16, generator=torch.Generator().manual_seed(0))
    network = SentenceNetwork(StaticEncoder(weight), ("mean",), [])
    model = checkpoint.Model(network, tokenizer, "static", Path("nowhere"))
    return BiEncoder(model, torch.device("cpu"), torch.float32)


def test_texts_without_any_token() -> None:
    model = static_model()
    table = model.network.encoder.embedding.weight.detach().numpy()
    found = model.encode(["", "the fox", " "])
    assert (found[[0, 2]] == 0).all()
    ids = model.tokenizer(["the fox"]).ids
    np.testing.assert_allclose(found[1], table[ids].mean(0), atol=1e-6)
    assert (model.encode([""]) == 0).all()
    assert (model.encode(["", " "], normalize=True) == 0).all()
    assert (model.encode(["", "\n"], long="average") == 0).all()
    assert [len(state) for state in model.encode(["", "the"], output="tokens")] == [
        0,
        len(model.tokenizer(["the"]).ids),
    ]
    assert (model.encode(TokenIds([[], []])) == 0).all()
    np.testing.assert_allclose(model.encode("the fox", normalize=True), unit(found)[1], atol=1e-6)


# Memory


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def endless(count: int) -> Iterator[str]:
    """Short texts, every one another: six letters and a number."""
    random_ = random.Random(0)
    for number in range(count):
        yield f"{''.join(random_.choices('abcdefghij', k=6))} text {number}"


def grown_mb(model: BiEncoder, count: int, settled: int) -> float:
    """How much memory grew between the `settled`-th text and the last."""
    done, before = 0, 0.0
    for part in model.encode(endless(count), chunk_rows=2000):
        assert part.shape[0] == 2000
        done += len(part)
        if done == settled:
            before = resident_mb()
    assert done == count
    return resident_mb() - before


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc on this system")


@needs_proc
def test_memory_is_flat(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from munjang.text.lookup import table

    monkeypatch.setattr(table, "MAX_ENTRIES", 1 << 12)  # full after 4,096 of the 60,000 spans to come
    assert grown_mb(BiEncoder.load(tiny_bert), 30_000, 10_000) < 16


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["static", "bert"])
def test_memory_is_flat_over_200_000_texts(tiny_bert: Path, kind: str) -> None:
    """As it is set: the table of spans takes its 40 MB, and nothing else grows. Measured: 19 and 17 MB."""
    model = static_model() if kind == "static" else BiEncoder.load(tiny_bert)
    assert grown_mb(model, 200_000, 20_000) < 60
    assert grown_mb(model, 200_000, 20_000) < 40  # now that it has them
