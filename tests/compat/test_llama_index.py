"""Our models in the real LlamaIndex: embeddings, a re-ranker, an index as its vector store."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: make frameworks")

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from munjang.bi_encoder import BiEncoder
from munjang.compat.llama_index import MunjangEmbedding, MunjangReranker, MunjangVectorStore
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index.index import Index
from tests.texts import mixed

TEXTS = [text for text in mixed(30, longest=12) if text.strip()]


def nodes() -> list[TextNode]:
    made = [
        TextNode(id_=f"n{row}", text=text, metadata={"row": row, "tags": ["a", "b"]}) for row, text in enumerate(TEXTS)
    ]
    for row, node in enumerate(made):
        node.excluded_embed_metadata_keys = ["row", "tags"]  # else LlamaIndex writes them before the text
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"file{row % 3}")
    return made


@pytest.fixture
def found(model: BiEncoder) -> VectorStoreIndex:
    store = MunjangVectorStore(Index.open("memory:", model))
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes(), storage_context=context, embed_model=MunjangEmbedding(model))


def test_vectors_are_the_models_own(model: BiEncoder) -> None:
    ours = MunjangEmbedding(model)
    np.testing.assert_allclose(ours.get_text_embedding_batch(TEXTS), model.encode_document(TEXTS), atol=1e-6)
    np.testing.assert_allclose(ours.get_query_embedding("fox"), model.encode_query("fox"), atol=2e-6)
    assert asyncio.run(ours.aget_query_embedding("fox")) == ours.get_query_embedding("fox")


def test_a_retriever_finds_the_nearest(found: VectorStoreIndex, model: BiEncoder) -> None:
    cosines = model.similarity(model.encode_query(["a quick fox"]), model.encode_document(TEXTS))[0]
    expected = [f"n{row}" for row in np.argsort(-cosines)[:4]]
    hits = found.as_retriever(similarity_top_k=4).retrieve("a quick fox")
    assert [hit.node.node_id for hit in hits] == expected
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines.tolist(), reverse=True)[:4], abs=1e-5)
    whole = nodes()[int(expected[0][1:])]
    assert hits[0].node.metadata == whole.metadata
    assert hits[0].node.get_content() == whole.get_content()
    assert hits[0].node.ref_doc_id == whole.ref_doc_id


def test_words_and_both_and_filters(found: VectorStoreIndex) -> None:
    for mode in ("text_search", "hybrid"):
        hits = found.as_retriever(vector_store_query_mode=mode, similarity_top_k=3).retrieve(TEXTS[4])
        assert hits[0].node.node_id == "n4"
    filters = MetadataFilters(
        filters=[
            MetadataFilter(key="row", value=3, operator=FilterOperator.GTE),
            MetadataFilter(key="row", value=[3, 4, 5, 9], operator=FilterOperator.IN),
            MetadataFilters(filters=[MetadataFilter(key="row", value=5)], condition=FilterCondition.NOT),
        ]
    )
    hits = found.as_retriever(similarity_top_k=9, filters=filters).retrieve("a quick fox")
    assert {hit.node.metadata["row"] for hit in hits} == {3, 4, 9}
    assert {node.metadata["row"] for node in found.vector_store.get_nodes(filters=filters)} == {3, 4, 9}
    with pytest.raises(InputError, match="choose from default, text_search, hybrid"):
        found.as_retriever(vector_store_query_mode="mmr").retrieve("fox")


def test_nodes_come_and_go(found: VectorStoreIndex) -> None:
    store = found.vector_store
    assert [node.node_id for node in store.get_nodes(["n2", "nothing"])] == ["n2"]
    store.add([TextNode(id_="n2", text="another text", embedding=None)])
    assert store.get_nodes(["n2"])[0].get_content() == "another text"
    store.delete("file1")
    assert not any(node.ref_doc_id == "file1" for node in store.get_nodes())
    store.delete_nodes(["n0"])
    assert not store.get_nodes(["n0"])
    store.clear()
    assert store.get_nodes() == []
    assert store.add([]) == []


def test_a_reranker(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1), device="cpu", threads=1)
    given = [NodeWithScore(node=TextNode(text=text, id_=str(row)), score=0.0) for row, text in enumerate(TEXTS)]
    ranked = MunjangReranker(scorer, top_n=5).postprocess_nodes(given, query_str="a quick fox")
    hits = scorer.rank("a quick fox", TEXTS, 5)
    assert [node.node.node_id for node in ranked] == [str(hit.index) for hit in hits]
    assert [node.score for node in ranked] == pytest.approx([hit.score for hit in hits])
    assert MunjangReranker(scorer).postprocess_nodes([], query_str="fox") == []
    with pytest.raises(InputError, match="needs the query"):
        MunjangReranker(scorer).postprocess_nodes(given)
