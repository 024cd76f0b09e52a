"""Use our models in KeyBERT through its documented extension point, a subclass of BaseEmbedder.

from keybert import KeyBERT
from munjang.compat.keybert import keybert_embedder
KeyBERT(model=keybert_embedder(BiEncoder.load())).extract_keywords(texts)
"""

from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.errors import MissingExtra
from munjang.types import Floats


def keybert_embedder(model: BiEncoder) -> Any:
    """Return an embedder for `KeyBERT(model=...)`."""
    try:
        from keybert.backend import BaseEmbedder
    except ImportError:
        raise MissingExtra("keybert", "keybert", "An embedder for KeyBERT") from None

    return embedder(BaseEmbedder, model)


def embedder(base: Any, model: BiEncoder) -> Any:
    """Wrap a model in a subclass of the BaseEmbedder of KeyBERT or BERTopic, which have the same interface."""

    class MunjangEmbedder(base):  # type: ignore[misc]  # known when it runs
        """Encodes texts and words with one of our models."""

        def embed(self, documents: Any, verbose: bool = False) -> Floats:
            """Return vectors of texts, given as a list or an array."""
            vectors: Floats = model.encode([str(text) for text in documents], progress=None if verbose else False)
            return vectors

    return MunjangEmbedder(embedding_model=model)
