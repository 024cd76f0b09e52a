"""LangChain's published contract tests of vector stores, embeddings and retrievers, over our models."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed: make frameworks")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests.embeddings import EmbeddingsIntegrationTests
from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

from munjang import BiEncoder, Index
from munjang.compat.langchain import MunjangEmbeddings, MunjangVectorStore


@pytest.fixture(scope="module")
def bi_encoder(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, device="cpu", threads=1)


class TestVectorStore(VectorStoreIntegrationTests):
    """Stores in memory; tests/contracts/stores covers the other engines."""

    @pytest.fixture
    def vectorstore(self, bi_encoder: BiEncoder) -> Generator[VectorStore, None, None]:
        with Index.open("memory:", bi_encoder) as index:
            yield MunjangVectorStore(index)


class TestEmbeddings(EmbeddingsIntegrationTests):
    """The tiny model's vectors."""

    @pytest.fixture(autouse=True)
    def _load(self, bi_encoder: BiEncoder) -> None:
        type(self).loaded = bi_encoder

    @property
    def embeddings_class(self) -> type[Embeddings]:
        return MunjangEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"model": self.loaded}


def retriever_of(store: MunjangVectorStore, k: int = 4) -> BaseRetriever:
    """Return a retriever; the tests give the number of results by name."""
    return store.as_retriever(search_kwargs={"k": k})


class TestRetriever(RetrieversIntegrationTests):
    """A retriever over a store of twelve texts."""

    @pytest.fixture(autouse=True)
    def _fill(self, bi_encoder: BiEncoder) -> Generator[None, None, None]:
        with Index.open("memory:", bi_encoder) as index:
            type(self).store = MunjangVectorStore(index)
            self.store.add_documents([Document(page_content=f"the quick fox {number}") for number in range(12)])
            yield

    @property
    def retriever_constructor(self) -> Any:
        return retriever_of

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"store": self.store}

    @property
    def retriever_query_example(self) -> str:
        return "a fox"
