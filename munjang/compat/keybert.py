"""KeyBERT with a model of ours, by its documented way for custom models: a subclass of its BaseEmbedder.

>>> from keybert import KeyBERT
>>> from munjang.compat.keybert import keybert_embedder
>>> KeyBERT(model=keybert_embedder(model)).extract_keywords(texts)
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

    class MunjangEmbedder(BaseEmbedder):  # type: ignore[misc]  # keybert ships no types
        """Encodes with one of our models."""

        def embed(self, documents: Any, verbose: bool = False) -> Floats:
            """Vectors of texts; KeyBERT passes lists and arrays of them."""
            vectors: Floats = model.encode([str(text) for text in documents], progress=None if verbose else False)
            return vectors

    return MunjangEmbedder(embedding_model=model)
