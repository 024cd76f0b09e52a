"""Texts beyond the limit: cut and counted, refused, averaged; the limit itself."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError, TruncationWarning
from munjang.types import TokenIds
from munjang.vectors.similarity import unit
from tests.bi_encoder.given import prompted

LONG = " ".join(f"word{number}" for number in range(300))


def test_a_million_characters(model: BiEncoder) -> None:
    for text in ("word " * 200_000, "가나다라 " * 200_000):
        with pytest.warns(TruncationWarning, match="1 of 2 texts are longer than 100 tokens and were cut"):
            found = model.encode([text, "short"])
        head = model.tokenizer([text]).ids
        assert len(head) == 100
        np.testing.assert_allclose(found[0], model.encode(TokenIds([head]))[0], atol=2e-6)


def test_the_warning_counts_the_callers_texts(model: BiEncoder) -> None:
    with pytest.warns(TruncationWarning, match="3 of 5 texts"):
        model.encode([LONG, "short", LONG, LONG + " more", "short"])
    with pytest.warns(TruncationWarning, match="1 of 1 texts") as caught:
        model.encode(LONG)
    assert caught[0].filename == __file__  # it points at the caller
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.encode(["short", "texts"])
        model.encode([LONG], long="average")


def test_long_texts_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="1 texts are longer than 100 tokens, the first being 'word0 word1"):
        model.encode(["short", LONG], long="error")
    assert model.encode(["short"], long="error").shape == (1, 32)


@pytest.mark.parametrize("normalize", [None, True, False])
def test_long_texts_averaged(make: Callable[..., Path], normalize: bool | None) -> None:
    model = BiEncoder.load(make("bert"))
    pieces = model.tokenizer.windows([LONG])[0]
    ids = TokenIds(np.split(pieces.ids, np.cumsum(pieces.lengths)[:-1]))
    assert len(ids) > 3
    parts = model.encode(ids, normalize=normalize).astype(np.float64)
    mean = (parts * pieces.lengths[:, None]).sum(0) / pieces.lengths.sum()
    expected = mean if normalize is False else mean / np.linalg.norm(mean)
    found = model.encode(["short", LONG, ""], long="average", normalize=normalize)
    np.testing.assert_allclose(found[1], expected, atol=2e-6)
    np.testing.assert_allclose(found[[0, 2]], model.encode(["short", ""], normalize=normalize), atol=2e-6)
    again = model.encode(["short", LONG, LONG], long="average", normalize=normalize, batch_tokens=64, output="torch")
    np.testing.assert_allclose(again[2].numpy(), expected, atol=2e-6)


def test_averaged_pieces_all_begin_with_the_prompt(make: Callable[..., Path]) -> None:
    for include in (True, False):
        model = prompted(make, include_prompt=include)
        head = model.tokenizer.prompt_length("quick: ") - 1
        pieces, _ = model.tokenizer.windows(["quick: " + LONG], head)
        states = model.encode(TokenIds(np.split(pieces.ids, np.cumsum(pieces.lengths)[:-1])), output="tokens")
        vectors = unit(np.stack([state[0 if include else head + 1 :].mean(0) for state in states]))
        mean = (vectors * pieces.lengths[:, None]).sum(0)
        found = model.encode([LONG], long="average", prompt_name="query")[0]
        np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=2e-6)


def test_a_prompt_that_leaves_no_room(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="leaves no room"):
        model.encode(["text"], long="average", prompt=LONG)


def test_max_length(make: Callable[..., Path]) -> None:
    model = BiEncoder.load(make("bert"))
    assert model.max_length == 100
    model.max_length = 10
    with pytest.warns(TruncationWarning, match="longer than 10 tokens"):
        short = model.encode(LONG)
    model.max_length = 128
    with pytest.warns(TruncationWarning, match="longer than 128 tokens"):
        assert not np.allclose(model.encode(LONG), short, atol=1e-3)
    for tokens in (2, 0, 129, None):
        with pytest.raises(InputError, match="max_length"):
            model.max_length = tokens
    assert model.max_length == 128
