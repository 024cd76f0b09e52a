"""Inputs: columns of every kind, hostile texts, ready token ids, and what is refused."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder
from munjang.errors import CheckpointError, InputError, TruncationWarning
from munjang.text.lookup.lookup import WholeTexts
from munjang.types import TokenIds
from tests.bi_encoder.given import TEXTS, prompted
from tests.texts import HOSTILE


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pd.Series(TEXTS, index=[9, 3, 3, 0, -1]),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        dict.fromkeys(TEXTS).keys(),
    ],
    ids=lambda given: type(given).__name__,
)
def test_columns(model: BiEncoder, vectors: np.ndarray, given: Any) -> None:
    found = model.encode(given)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, vectors, atol=2e-6)


def test_one_text_and_none(model: BiEncoder) -> None:
    assert model.encode("하나").shape == (32,)
    assert model.encode(["하나"]).shape == (1, 32)
    assert model.encode([]).shape == (0, 32)
    assert model.encode([]).dtype == np.float32
    assert model.encode([], truncate_dim=8).shape == (0, 8)
    assert model.encode([], output="torch").shape == (0, 32)
    assert model.encode([], output="tokens") == []
    assert model.encode([], precision="ubinary").shape == (0, 4)
    assert model.encode([], long="average").shape == (0, 32)
    assert model.encode(TokenIds([])).shape == (0, 32)
    assert list(model.encode(iter([]))) == []


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "qwen3"])
def test_empty_and_blank_texts_like_the_incumbent(make: Callable[..., Path], family: str) -> None:
    folder = make(family)
    ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
    for text in ("", " ", "\n\t  ", "\u200b"):
        expected = theirs.encode(text)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(ours.encode(text), expected, atol=1e-5)
        np.testing.assert_allclose(ours.encode([text, "one", text])[2], expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_hostile_texts(make: Callable[..., Path], family: str) -> None:
    model = BiEncoder.load(make(family))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        found = model.encode(HOSTILE)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "list of strings, not missing"),
        (7, r"list of strings, not int \(7\)"),
        (b"bytes", "list of strings, not bytes"),
        ({"a": "b"}, "list of strings, not dict"),
        ({"a", "b"}, "list of strings, not set"),
        (["a", None, "b"], "Item 1 of the texts is missing"),
        (pd.Series(["a", np.nan]), "Item 1 of the texts is missing"),
        (["a", 1.5], r"Item 1 of the texts is float \(1.5\)"),
        (["a", b"b"], r"Item 1 of the texts is bytes.*decode"),
        (["a", ["b", "c"]], "Item 1 of the texts is list.*CrossEncoder"),
        ([[1, 2, 3]], "Item 0 of the texts is list.*TokenIds"),
        (pd.DataFrame({"text": ["a"]}), "one column, not a whole DataFrame"),
    ],
    ids=lambda given: "" if isinstance(given, str) else type(given).__name__,
)
def test_refused_by_name(model: BiEncoder, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.encode(given)
    with pytest.raises(ValueError, match=message):  # for callers who know only Python's own
        model.encode_query(given)


def test_a_stream_with_something_else_in_it(model: BiEncoder) -> None:
    results = model.encode(iter(["a", "b", "c", None, "d"]), chunk_rows=2)
    assert next(results).shape == (2, 32)
    with pytest.raises(InputError, match="Item 3 of the texts is missing"):
        next(results)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "mpnet"])
def test_token_ids_are_the_texts(make: Callable[..., Path], family: str) -> None:
    model = BiEncoder.load(make(family))
    ids = model.tokenize(TEXTS)
    assert len(ids) == len(TEXTS)
    np.testing.assert_allclose(model.encode(ids), model.encode(TEXTS), atol=2e-6)
    listed = TokenIds([list(map(int, sequence)) for sequence in ids.sequences])
    np.testing.assert_allclose(model.encode(listed, truncate_dim=4), model.encode(TEXTS, truncate_dim=4), atol=2e-6)
    assert [len(state) for state in model.encode(ids, output="tokens")] == ids.lengths.tolist()


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([[1, 2], [3, 10_000]], "Token ids must lie between 0 and"),
        ([[1, -1]], "Token ids of text 0 lie between -1 and 1"),
        ([np.array([1, 2**32 + 1])], "Token ids of text 0 lie between 1 and 4294967297"),
        ([[1.5]], "flat sequence of whole numbers"),
        ([["a"]], "flat sequence of whole numbers"),
        ([[[1]]], "flat sequence of whole numbers"),
        ([3], "flat sequence of whole numbers"),
        ([[5] * 5, [5] * 101], "Text 1 has 101 token ids; the model reads 100"),
    ],
)
def test_token_ids_refused(model: BiEncoder, sequences: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.encode(TokenIds(sequences))


def test_token_ids_take_no_prompt(make: Callable[..., Path]) -> None:
    model = prompted(make)
    ids = model.tokenize(["fox"])
    for call in (lambda: model.encode(ids, prompt="a"), lambda: model.encode_query(ids)):
        with pytest.raises(InputError, match="give no prompt"):
            call()


def test_ids_that_the_model_has_no_row_for(make: Callable[..., Path]) -> None:
    model = BiEncoder.load(make("bert"))
    model.tokenizer.rust.add_tokens(["brandnew"])
    model.tokenizer.tokenize_bodies = WholeTexts(model.tokenizer.rust)
    with pytest.raises(CheckpointError, match=r"gives the id .* a token was added without a row"):
        model.encode(["a brandnew word"])
    assert model.encode(["another word"]).shape == (1, 32)
