"""Use our models in LangChain (extra): embeddings for its stores, a re-ranker for its retrievers.

from langchain_core.vectorstores import InMemoryVectorStore
from munjang.compat.langchain import MunjangEmbeddings, MunjangReranker
store = InMemoryVectorStore(MunjangEmbeddings("path/to/a/model"))
MunjangReranker("path/to/a/cross-encoder", top_k=3).compress_documents(documents, "a question")
"""

import os
from collections.abc import Sequence
from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, MissingExtra

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from pydantic import ConfigDict
except ImportError:
    raise MissingExtra("langchain-core", "langchain", "A model in LangChain") from None


class MunjangEmbeddings(Embeddings):
    """A BiEncoder as LangChain's Embeddings: documents and queries get the model's own prompts."""

    def __init__(self, model: BiEncoder | str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Take a model, or a path to load it from; `options` are those of `encode`, such as truncate_dim=256."""
        self.model = model if isinstance(model, BiEncoder) else BiEncoder.load(model)
        self.options = {"progress": False, **options}
        if self.options.get("output", "numpy") != "numpy":
            raise InputError(f"LangChain takes lists of numbers; leave output={options['output']!r} out.")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents as lists."""
        vectors: list[list[float]] = self.model.encode_document(list(texts), **self.options).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query as a list."""
        vector: list[float] = self.model.encode_query(text, **self.options).tolist()
        return vector


class MunjangReranker(BaseDocumentCompressor):
    """A CrossEncoder that ranks documents for a query and keeps the best; the score is metadata["relevance_score"].

    LangChain's own re-rankers use the same key.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    scorer: CrossEncoder
    top_k: int | None = None

    def __init__(
        self, scorer: CrossEncoder | str | os.PathLike[str] | None = None, top_k: int | None = None, **more: Any
    ) -> None:
        """Take a scorer, or a path to load it from. `top_k` None keeps all documents."""
        loaded = scorer if isinstance(scorer, CrossEncoder) else CrossEncoder.load(scorer)
        super().__init__(**{"scorer": loaded, "top_k": top_k, **more})  # pydantic takes keywords only

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        """Return copies of the best documents, best first."""
        texts = [document.page_content for document in documents]
        hits = self.scorer.rank(query, texts, self.top_k, progress=False)
        return [
            documents[hit.index].model_copy(
                update={"metadata": {**documents[hit.index].metadata, "relevance_score": hit.score}}
            )
            for hit in hits
        ]
