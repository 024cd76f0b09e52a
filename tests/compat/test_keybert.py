"""The real KeyBERT on a model of ours: the keywords that it gives on sentence-transformers' own."""

from pathlib import Path

import pytest

from munjang import BiEncoder
from munjang.compat.keybert import keybert_embedder

TEXTS = [
    "Supervised learning maps an input to an output based on example pairs of training data.",
    "The kitten sleeps on the sofa while the dog barks at the mailman in the garden.",
]


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
