"""Use our models in LlamaIndex (extra): embeddings, a re-ranker, and an index as its vector store.

from llama_index.core import VectorStoreIndex
from munjang.compat.llama_index import MunjangEmbedding, MunjangReranker, MunjangVectorStore
store = MunjangVectorStore(Index.open("folder"))
found = VectorStoreIndex.from_vector_store(store, embed_model=MunjangEmbedding(store.index.model))
found.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=5).retrieve("a question")
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.compat.conditions import condition, joined
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, MissingExtra
from munjang.index.index import Index

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ImportError:
    raise MissingExtra("llama-index-core", "llama-index", "A model in LlamaIndex") from None

NODE, KIND, SOURCE = "_node_content", "_node_type", "ref_doc_id"  # of a node's metadata, as LlamaIndex names them
WAYS = {
    VectorStoreQueryMode.DEFAULT: None,  # the vector that LlamaIndex gives
    VectorStoreQueryMode.TEXT_SEARCH: ("words",),
    VectorStoreQueryMode.HYBRID: ("words", "dense"),
}


class MunjangEmbedding(BaseEmbedding):
    """A BiEncoder as LlamaIndex's embeddings: texts and queries get the model's own prompts."""

    _model: BiEncoder = PrivateAttr()

    def __init__(self, model: BiEncoder | str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Take a model, or a path to load it from; `options` are those of BaseEmbedding."""
        loaded = model if isinstance(model, BiEncoder) else BiEncoder.load(model)
        super().__init__(**{"model_name": loaded.model.folder.name, **options})
        self._model = loaded

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex stores."""
        return "MunjangEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._model.encode_query(query).tolist()
        return vector

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode_document(texts, progress=False).tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class MunjangReranker(BaseNodePostprocessor):
    """A CrossEncoder that orders nodes for a query and keeps the best; a node's score becomes the scorer's."""

    top_n: int | None = None
    _scorer: CrossEncoder = PrivateAttr()

    def __init__(
        self, scorer: CrossEncoder | str | os.PathLike[str] | None = None, top_n: int | None = None, **options: Any
    ) -> None:
        """Take a scorer, or a path to load it from. `top_n` None keeps all nodes."""
        super().__init__(**{"top_n": top_n, **options})
        self._scorer = scorer if isinstance(scorer, CrossEncoder) else CrossEncoder.load(scorer)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex stores."""
        return "MunjangReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("A re-ranker needs the query: give query_str or query_bundle.")
        texts = [node.node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]
        hits = self._scorer.rank(query_bundle.query_str, texts, self.top_n, progress=False) if nodes else []
        return [NodeWithScore(node=nodes[hit.index].node, score=hit.score) for hit in hits]


class MunjangVectorStore(BasePydanticVectorStore):
    """An Index as LlamaIndex's vector store: by vectors, by words (mode text_search), or both (mode hybrid).

    Nodes keep the vectors that come with them, which have to be of the index's model; without them it computes its own.
    """

    stores_text: bool = True
    flat_metadata: bool = False
    _index: Index = PrivateAttr()

    def __init__(self, index: Index) -> None:
        super().__init__(stores_text=True)
        self._index = index

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex stores."""
        return "MunjangVectorStore"

    @property
    def client(self) -> Index:
        """Return the index."""
        return self._index

    index = client

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, or replace those whose ids are there; return the ids."""
        if not nodes:
            return []
        rows = [node_to_metadata_dict(node, remove_text=True) for node in nodes]
        metadata = [{key: row[key] for key in row if key in (NODE, KIND, SOURCE) or key in node.metadata}
                    for row, node in zip(rows, nodes, strict=True)]  # fmt: skip
        vectors = [node.embedding for node in nodes]
        texts = [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        given = None if any(vector is None for vector in vectors) else np.asarray(vectors, np.float32)
        options: dict[str, Any] = {} if given is None else {"vectors": given}
        scalar = [{key: value for key, value in row.items() if _is_scalar(value)} for row in metadata]
        return self._index.upsert(texts, ids=[node.node_id for node in nodes], metadata=scalar, **options)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        self._index.delete([id for id, row in self._rows() if row[1].get(SOURCE) == ref_doc_id])

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by their ids, or all that a filter keeps."""
        found = [node.node_id for node in self.get_nodes(node_ids, filters)]
        if found:
            self._index.delete(found)

    def clear(self) -> None:
        """Delete all nodes."""
        found = [id for id, _ in self._rows()]
        if found:
            self._index.delete(found)

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes by their ids, or all that a filter keeps."""
        from munjang.stores.filters import matches
        from munjang.stores.parsing import parse

        where = _where(filters)
        test = None if where is None else parse(where, self._index.store.schema.fields)
        wanted = None if node_ids is None else set(node_ids)
        return [
            metadata_dict_to_node(dict(row), text=text)
            for id, (text, row) in self._rows()
            if (wanted is None or id in wanted) and (test is None or matches(test, {**row, "id": id}))
        ]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the best nodes; further arguments are those of `Index.search`, such as rerank."""
        if query.mode not in WAYS:
            allowed = ", ".join(mode.value for mode in WAYS)
            raise InputError(f"The mode {query.mode.value!r} is not there; choose from {allowed}.")
        ways = WAYS[query.mode]
        by_vector = ways is None and query.query_embedding is not None
        asked: Any = np.asarray(query.query_embedding, np.float32) if by_vector else query.query_str
        if asked is None:
            raise InputError(f"The mode {query.mode.value!r} needs query_str.")
        parts = [part for part in (_where(query.filters),) if part is not None]
        named = (("document_id", query.node_ids), (SOURCE, query.doc_ids))
        parts += [condition(name, "in", ids) for name, ids in named if ids]
        options = {"group": "document", **({} if by_vector else {"by": ways or ("dense",)}), **kwargs}
        where = joined("and", parts) if parts else None
        hits = self._index.search(asked, query.similarity_top_k, where=where, **options)
        nodes = [metadata_dict_to_node(dict(hit.metadata), text=hit.text) for hit in hits]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=[hit.score for hit in hits], ids=[hit.document_id for hit in hits]
        )

    def _rows(self) -> list[tuple[str, tuple[str, dict[str, Any]]]]:
        """Return text and metadata of every node."""
        found: dict[str, tuple[str, dict[str, Any]]] = {}
        for rows in self._index.store.scan(with_vectors=False):
            for id, text, metadata in zip(rows.document_ids, rows.texts, rows.metadata, strict=True):
                found.setdefault(id, (text, dict(metadata)))
        return list(found.items())


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))


def _where(filters: MetadataFilters | None) -> str | None:
    if filters is None or not filters.filters:
        return None
    parts = []
    for each in filters.filters:
        if isinstance(each, MetadataFilters):
            parts.append(_where(each) or "")
        elif each.operator.value == "is_empty":
            parts.append(condition(each.key, "==", None))
        else:
            parts.append(condition(each.key, each.operator.value, each.value))
    return joined((filters.condition.value if filters.condition else "and"), [part for part in parts if part])
