"""Use our models in BERTopic through its documented extension point, a subclass of BaseEmbedder.

from bertopic import BERTopic
from munjang.compat.bertopic import bertopic_embedder
BERTopic(embedding_model=bertopic_embedder(BiEncoder.load())).fit_transform(texts)
"""

from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.compat.keybert import embedder
from munjang.errors import MissingExtra


def bertopic_embedder(model: BiEncoder) -> Any:
    """Return an embedder for `BERTopic(embedding_model=...)`."""
    try:
        from bertopic.backend import BaseEmbedder
    except ImportError:
        raise MissingExtra("bertopic", "bertopic", "An embedder for BERTopic") from None

    return embedder(BaseEmbedder, model)
