"""Our models in the real LangChain: its vector store, its runnables, its compressor's contract."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from tests.texts import mixed

pytest.importorskip("langchain_core", reason="langchain-core is not installed: pip install 'munjang[langchain]'")

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from munjang.compat.langchain import MunjangEmbeddings, MunjangReranker, MunjangVectorStore

TEXTS = [text for text in mixed(30, longest=12) if text.strip()]


def test_vectors_are_the_models_own(model: BiEncoder) -> None:
    ours = MunjangEmbeddings(model)
    assert isinstance(ours, Embeddings)
    np.testing.assert_allclose(ours.embed_documents(TEXTS), model.encode_document(TEXTS), atol=1e-6)
    np.testing.assert_allclose(ours.embed_query("fox"), model.encode(["over: fox"])[0], atol=2e-6)
    assert ours.embed_documents([]) == []
    assert len(MunjangEmbeddings(model, truncate_dim=8).embed_query("fox")) == 8
    assert asyncio.run(ours.aembed_query("fox")) == ours.embed_query("fox")


def test_its_vector_store_finds_what_ours_does(model: BiEncoder) -> None:
    store = InMemoryVectorStore(MunjangEmbeddings(model))
    store.add_texts(TEXTS)
    cosines = model.similarity(model.encode_query(["a quick fox"]), model.encode_document(TEXTS))[0]
    expected = [TEXTS[row] for row in np.argsort(-cosines)[:4]]
    assert [document.page_content for document in store.similarity_search("a quick fox", k=4)] == expected
    retriever = store.as_retriever(search_kwargs={"k": 2})
    assert [document.page_content for document in retriever.invoke("a quick fox")] == expected[:2]


def test_a_reranker(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1), device="cpu", threads=1)
    documents = [Document(text, metadata={"row": row}) for row, text in enumerate(TEXTS)]
    ours = MunjangReranker(scorer, top_k=5)
    assert isinstance(ours, BaseDocumentCompressor)
    found = ours.compress_documents(documents, "a quick fox")
    hits = scorer.rank("a quick fox", TEXTS, 5)
    assert [document.metadata["row"] for document in found] == [hit.index for hit in hits]
    assert [document.metadata["relevance_score"] for document in found] == pytest.approx([hit.score for hit in hits])
    assert "relevance_score" not in documents[hits[0].index].metadata
    assert ours.compress_documents([], "a quick fox") == []
    again = asyncio.run(ours.acompress_documents(documents, "a quick fox"))
    assert [document.page_content for document in again] == [document.page_content for document in found]


def test_from_a_folder(tiny_bert: Path) -> None:
    assert len(MunjangEmbeddings(tiny_bert).embed_query("fox")) == 32
    with pytest.raises(InputError, match="leave output='torch' out"):
        MunjangEmbeddings(tiny_bert, output="torch")


def test_an_index_is_a_vector_store(tiny_bert: Path) -> None:
    """What LangChain's own contract asks of a store: add, replace, get, delete, search, retrieve, in both forms."""
    model = BiEncoder.load(tiny_bert, device="cpu", threads=1)  # no prompts: a query is nearest to its own text
    texts = ["foo", "bar", "baz"]
    store = MunjangVectorStore.from_texts(
        texts, MunjangEmbeddings(model), [{"n": n} for n in range(3)], ids=["1", "2", "3"]
    )
    assert isinstance(store, VectorStore)
    found = store.similarity_search("bar", k=1)
    assert found == [Document(page_content="bar", metadata={"n": 1}, id="2")]
    assert len(store.similarity_search("foo", k=2)) == 2
    assert store.similarity_search("foo", k=3, where="n == 2")[0].id == "3"
    added = store.add_documents([Document(page_content="new", id="2"), Document(page_content="more")])
    assert added[0] == "2"
    assert [document.page_content for document in store.get_by_ids(["2", added[1], "nothing"])] == ["new", "more"]
    scored = store.similarity_search_with_score("more", k=4)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    vector = MunjangEmbeddings(model).embed_documents(["baz"])[0]
    assert store.similarity_search_by_vector(vector, k=1)[0].id == "3"
    assert store.delete(["1", "nothing"])
    assert store.get_by_ids(["1"]) == []
    retriever = store.as_retriever(search_kwargs={"k": 2})
    assert retriever.invoke("baz")[0].page_content == "baz"
    assert asyncio.run(retriever.ainvoke("baz")) == retriever.invoke("baz")
    assert asyncio.run(store.aadd_texts([])) == []
    assert isinstance(store.embeddings, MunjangEmbeddings)
    with pytest.raises(InputError, match="Give the ids"):
        store.delete()
    with pytest.raises(InputError, match="needs MunjangEmbeddings"):
        MunjangVectorStore.from_texts(["x"], DeterministicFakeEmbedding(size=3))
