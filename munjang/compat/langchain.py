"""Use our models in LangChain (extra): embeddings for its stores, a re-ranker for its retrievers, an index as a store.

from langchain_core.vectorstores import InMemoryVectorStore
from munjang.compat.langchain import MunjangEmbeddings, MunjangReranker
store = InMemoryVectorStore(MunjangEmbeddings("path/to/a/model"))
MunjangReranker("path/to/a/cross-encoder", top_k=3).compress_documents(documents, "a question")
MunjangVectorStore(Index.open("folder")).as_retriever(search_kwargs={"k": 5}).invoke("a question")
"""

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, MissingExtra
from munjang.index.index import Index
from munjang.types import Hit

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict
except ImportError:
    raise MissingExtra("langchain-core", "langchain", "A model in LangChain") from None

RENAMED = {"id": "metadata_id", "document_id": "metadata_document_id"}  # metadata whose names every row of ours has


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


class MunjangVectorStore(VectorStore):
    """An Index as LangChain's VectorStore: words and vectors together, passages, filters, re-ranking.

    `as_retriever(search_kwargs={"k": 5, "where": "year > 2020", "rerank": scorer})` passes the options of `search`.
    Metadata named id and document_id, which every row has, are called metadata_id and metadata_document_id in `where`.
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    @property
    def embeddings(self) -> Embeddings | None:
        """Return the model that the index reads texts with."""
        model = self.index.model
        return MunjangEmbeddings(model) if isinstance(model, BiEncoder) else None

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those whose ids are there; return the ids."""
        rows = list(texts)
        given: Sequence[str | None] = ids or [None] * len(rows)
        named = [each or str(uuid.uuid4()) for each in given]
        if rows:
            metadata = [_renamed(each, RENAMED) for each in metadatas or [{}] * len(rows)]
            self.index.upsert(rows, ids=named, metadata=metadata)
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete texts by their ids; ids that are not there are passed over."""
        if ids is None:
            raise InputError("Give the ids to delete; the folder of an index is deleted as any other.")
        if ids:
            self.index.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the texts with these ids, without those that are not there."""
        passages = self.index.store.passages(list(ids))
        return [_whole(self.index.get(list(passages[each]))) for each in ids if passages.get(each)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the best texts for a query; further arguments are those of `Index.search`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return the best texts with their scores, higher is better."""
        hits = self.index.search(query, k, **{"group": "document", **kwargs})
        return [(_document(hit), hit.score) for hit in hits]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the texts nearest to a vector."""
        vector = np.asarray(embedding, np.float32)
        return [_document(hit) for hit in self.index.search(vector, k, **{"group": "document", **kwargs})]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        location: str = "memory:",
        **kwargs: Any,
    ) -> Self:
        """Make an index, in memory or where `location` says, with the model of MunjangEmbeddings."""
        if not isinstance(embedding, MunjangEmbeddings):
            raise InputError(f"An index needs MunjangEmbeddings, which holds a model, not {type(embedding).__name__}.")
        store = cls(Index.open(location, embedding.model, **kwargs))
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _renamed(metadata: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in metadata.items()}


def _restored(hit: Hit) -> dict[str, Any]:
    return _renamed(hit.metadata or {}, {ours: theirs for theirs, ours in RENAMED.items()})


def _document(hit: Hit) -> Document:
    return Document(page_content=hit.text or "", id=hit.document_id, metadata=_restored(hit))


def _whole(passages: Sequence[Hit]) -> Document:
    """Return a document from its passages, which overlap."""
    text = ""
    for hit in sorted(passages, key=lambda hit: hit.start or 0):
        text += (hit.text or "")[max(len(text) - (hit.start or 0), 0) :]
    return Document(page_content=text, id=passages[0].document_id, metadata=_restored(passages[0]))
