"""BERTopic with a model of ours, by its documented way for custom models: a subclass of its BaseEmbedder.

>>> from bertopic import BERTopic
>>> from munjang.compat.bertopic import bertopic_embedder
>>> BERTopic(embedding_model=bertopic_embedder(model)).fit_transform(texts)
"""

from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.errors import MissingExtra
from munjang.types import Floats


def bertopic_embedder(model: BiEncoder) -> Any:
    """What `BERTopic(embedding_model=...)` takes."""
    try:
        from bertopic.backend import BaseEmbedder
    except ImportError:
        raise MissingExtra("bertopic", "bertopic", "An embedder for BERTopic") from None

    class MunjangEmbedder(BaseEmbedder):  # type: ignore[misc]  # bertopic ships no types
        """Encodes with one of our models; texts and words alike."""

        def embed(self, documents: Any, verbose: bool = False) -> Floats:
            """Vectors of texts; BERTopic passes lists and arrays of them."""
            vectors: Floats = model.encode([str(text) for text in documents], progress=None if verbose else False)
            return vectors

    return MunjangEmbedder(embedding_model=model)
