"""Our models in the real Haystack: its published tests of document stores, and pipelines."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("haystack", reason="haystack-ai is not installed: make frameworks")

from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseTests

from munjang.bi_encoder import BiEncoder
from munjang.compat.haystack import (
    MunjangDocumentEmbedder,
    MunjangDocumentStore,
    MunjangRanker,
    MunjangRetriever,
    MunjangTextEmbedder,
)
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from tests.texts import mixed

TEXTS = [text for text in mixed(30, longest=12) if text.strip()]


class TestStore(DocumentStoreBaseTests):
    """Haystack's contract. The index reads texts itself, so that vectors of documents are not kept."""

    @pytest.fixture
    def document_store(self, model: BiEncoder) -> MunjangDocumentStore:
        return MunjangDocumentStore("memory:", model)

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        assert sorted(received, key=lambda each: each.id) == sorted(
            (replace(each, embedding=None) for each in expected), key=lambda each: each.id
        )

    def test_write_documents(self, document_store: MunjangDocumentStore) -> None:
        assert document_store.write_documents([Document(content="one", id="1")]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([Document(content="one", id="1")])


@pytest.fixture
def store(model: BiEncoder) -> MunjangDocumentStore:
    made = MunjangDocumentStore("memory:", model)
    made.write_documents([Document(content=text, meta={"row": row, "x": [1]}) for row, text in enumerate(TEXTS)])
    return made


def test_a_pipeline_retrieves_and_ranks(store: MunjangDocumentStore, make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1), device="cpu", threads=1)
    pipeline = Pipeline()
    pipeline.add_component("retriever", MunjangRetriever(store, top_k=8))
    pipeline.add_component("ranker", MunjangRanker(scorer, top_k=3))
    pipeline.connect("retriever.documents", "ranker.documents")
    query = {"query": "a quick fox"}
    found = pipeline.run({"retriever": query, "ranker": query}, include_outputs_from={"retriever"})
    candidates = found["retriever"]["documents"]
    expected = store.index.search("a quick fox", 8)
    assert [each.id for each in candidates] == [hit.document_id for hit in expected]
    assert candidates[0].meta["x"] == [1]
    hits = scorer.rank("a quick fox", [each.content for each in candidates], 3)
    assert [each.score for each in found["ranker"]["documents"]] == pytest.approx([hit.score for hit in hits])


def test_filters_of_a_search(store: MunjangDocumentStore) -> None:
    row = {"field": "meta.row", "operator": ">=", "value": 4}
    inner = {"field": "meta.row", "operator": "not in", "value": [5, 6]}
    both = {"operator": "AND", "conditions": [row, inner, {"field": "meta.row", "operator": "<", "value": 8}]}
    documents = MunjangRetriever(store, filters=both, options={"by": "words"}).run(" ".join(TEXTS))["documents"]
    assert {each.meta["row"] for each in documents} <= {4, 7}
    assert len(MunjangRetriever(store, filters=both).run("fox")["documents"]) == 2
    with pytest.raises(FilterError, match="'value' is missing"):
        MunjangRetriever(store).run("fox", filters={"field": "meta.row", "operator": "=="})


def test_embedders(model: BiEncoder) -> None:
    documents = [Document(content=text) for text in TEXTS]
    found = MunjangDocumentEmbedder(model).run(documents)["documents"]
    np.testing.assert_allclose([each.embedding for each in found], model.encode_document(TEXTS), atol=1e-6)
    vector = MunjangTextEmbedder(model, {"truncate_dim": 8}).run("fox")["embedding"]
    np.testing.assert_allclose(vector, model.encode_query("fox", truncate_dim=8), atol=1e-6)
    assert MunjangDocumentEmbedder(model).run([]) == {"documents": []}
    for wrong in ("fox", ["fox"]):
        with pytest.raises(ValueError, match="list of Document"):
            MunjangDocumentEmbedder(model).run(wrong)  # type: ignore[arg-type]


def test_pipelines_are_saved_by_the_paths_of_their_models(tiny_bert: Path, model: BiEncoder, tmp_path: Path) -> None:
    pipeline = Pipeline()
    store = MunjangDocumentStore(str(tmp_path / "index"), str(tiny_bert))
    pipeline.add_component("retriever", MunjangRetriever(store, top_k=2))
    pipeline.add_component("embedder", MunjangTextEmbedder(str(tiny_bert)))
    pipeline.add_component("ranker", MunjangRanker(top_k=3))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["munjang.compat.haystack"])
    assert loaded.get_component("retriever").top_k == 2
    assert (
        loaded.get_component("embedder").run("fox")["embedding"]
        == MunjangTextEmbedder(model.model.folder).run("fox")["embedding"]
    )
    with pytest.raises(InputError, match="give the path"):
        MunjangTextEmbedder(model).to_dict()
