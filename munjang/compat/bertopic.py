"""BERTopic with a model of ours, by its documented way for custom models: a subclass of its BaseEmbedder.

from bertopic import BERTopic
from munjang.compat.bertopic import bertopic_embedder
BERTopic(embedding_model=bertopic_embedder(BiEncoder.load())).fit_transform(texts)
"""

from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.compat.keybert import embedder
from munjang.errors import MissingExtra


def bertopic_embedder(model: BiEncoder) -> Any:
    """What `BERTopic(embedding_model=...)` takes."""
    try:
        from bertopic.backend import BaseEmbedder
    except ImportError:
        raise MissingExtra("bertopic", "bertopic", "An embedder for BERTopic") from None

    return embedder(BaseEmbedder, model)
