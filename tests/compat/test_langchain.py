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
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from munjang.compat.langchain import MunjangEmbeddings, MunjangReranker

TEXTS = [text for text in mixed(30, longest=12) if text.strip()]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    loaded = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    loaded.prompts = {"query": "over: ", "document": "jumps: "}
    return loaded


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
