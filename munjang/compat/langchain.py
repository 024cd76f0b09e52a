"""Our models in LangChain (extra): vectors for its stores, and a re-ranker for its retrievers.

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
        """A model, or where to load it from; `options` are those of `encode`, such as truncate_dim=256."""
        self.model = model if isinstance(model, BiEncoder) else BiEncoder.load(model)
        self.options = {"progress": False, **options}
        if self.options.get("output", "numpy") != "numpy":
            raise InputError(f"LangChain takes lists of numbers; leave output={options['output']!r} out.")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of documents, as lists."""
        found: list[list[float]] = self.model.encode_document(list(texts), **self.options).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, as a list."""
        found: list[float] = self.model.encode_query(text, **self.options).tolist()
        return found


class MunjangReranker(BaseDocumentCompressor):
    """A CrossEncoder that orders documents for a query and keeps the best; their score is metadata["relevance_score"].

    The name of that key is the one that LangChain's own re-rankers use.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    scorer: CrossEncoder
    top_k: int | None = None

    def __init__(
        self, scorer: CrossEncoder | str | os.PathLike[str] | None = None, top_k: int | None = None, **more: Any
    ) -> None:
        """A scorer, or where to load it from. `top_k` None: all documents, in order."""
        loaded = scorer if isinstance(scorer, CrossEncoder) else CrossEncoder.load(scorer)
        super().__init__(**{"scorer": loaded, "top_k": top_k, **more})  # pydantic's, which has no names

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        """The best documents, best first; the given ones stay as they are."""
        texts = [document.page_content for document in documents]
        hits = self.scorer.rank(query, texts, self.top_k, progress=False)
        return [
            documents[hit.index].model_copy(
                update={"metadata": {**documents[hit.index].metadata, "relevance_score": hit.score}}
            )
            for hit in hits
        ]
