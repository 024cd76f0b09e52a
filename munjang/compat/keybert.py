"""KeyBERT with a model of ours, by its documented way for custom models: a subclass of its BaseEmbedder.

from keybert import KeyBERT
from munjang.compat.keybert import keybert_embedder
KeyBERT(model=keybert_embedder(BiEncoder.load())).extract_keywords(texts)
"""

from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.errors import MissingExtra
from munjang.types import Floats


def keybert_embedder(model: BiEncoder) -> Any:
    """What `KeyBERT(model=...)` takes."""
    try:
        from keybert.backend import BaseEmbedder
    except ImportError:
        raise MissingExtra("keybert", "keybert", "An embedder for KeyBERT") from None

    return embedder(BaseEmbedder, model)


def embedder(base: Any, model: BiEncoder) -> Any:
    """One of our models as the class that KeyBERT, and in the same words BERTopic, lets users derive from."""

    class MunjangEmbedder(base):  # type: ignore[misc]  # known when it runs
        """Encodes with one of our models; texts and words alike."""

        def embed(self, documents: Any, verbose: bool = False) -> Floats:
            """Vectors of texts, which come as lists and arrays."""
            vectors: Floats = model.encode([str(text) for text in documents], progress=None if verbose else False)
            return vectors

    return MunjangEmbedder(embedding_model=model)
