"""The real KeyBERT on a model of ours: the keywords that it gives on sentence-transformers' own."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang import BiEncoder, compat
from munjang.compat.keybert import keybert_embedder

TEXTS = [
    "Supervised learning maps an input to an output based on example pairs of training data.",
    "The kitten sleeps on the sofa while the dog barks at the mailman in the garden.",
]


def test_a_model_is_taken_as_it_is(make: Callable[..., Path]) -> None:
    keybert = pytest.importorskip("keybert")
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    keywords = keybert.KeyBERT(model=model)
    assert keywords.model is model  # their default would be fetched from the Hub
    expected = keybert.KeyBERT(keybert_embedder(model.facade)).extract_keywords(TEXTS)
    assert keywords.extract_keywords(TEXTS) == expected
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is compat.SentenceTransformer
    assert (again.encode(TEXTS) == model.encode(TEXTS)).all()


@pytest.mark.parametrize("settings", [{}, {"use_mmr": True, "keyphrase_ngram_range": (1, 2)}])
def test_keywords_are_those_on_sentence_transformers(minilm: Path, settings: dict) -> None:
    keybert = pytest.importorskip("keybert")
    from sentence_transformers import SentenceTransformer

    ours = keybert.KeyBERT(keybert_embedder(BiEncoder.load(minilm, device="cpu", dtype="float32")))
    theirs = keybert.KeyBERT(SentenceTransformer(str(minilm), device="cpu"))
    for mine, given in zip(
        ours.extract_keywords(TEXTS, **settings), theirs.extract_keywords(TEXTS, **settings), strict=True
    ):
        assert [phrase for phrase, _ in mine] == [phrase for phrase, _ in given]
        assert [score for _, score in mine] == pytest.approx([score for _, score in given], abs=2e-4)
