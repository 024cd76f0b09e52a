"""A server with sparse and late-interaction models: their vectors, and four ways to search."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from munjang import BiEncoder, MultiVectorEncoder, SparseEncoder
from munjang.index import Index
from tests.server.routes.searching import TEXTS
from tests.token_models import make_late, make_splade

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.server.beside import BesideEmbedder
from munjang.server.embedder import Embedder
from munjang.server.service import Service
from munjang.server.views import ServedIndex
from tests.server.running import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Any) -> Iterator[Running]:
    root, model = tmp_path_factory.mktemp("beside"), BiEncoder.load(tiny_bert, "cpu")
    sparse = SparseEncoder.load(make_splade(root / "splade"), "cpu")
    late = MultiVectorEncoder.load(make_late(root / "colbert"), "cpu")
    index = Index.open("memory:", model, chunk=0, sparse=sparse, late=late)
    index.add(TEXTS, [f"d/{n}" for n in range(len(TEXTS))])
    beside = [BesideEmbedder("splade", sparse), BesideEmbedder("colbert", late)]
    served = [ServedIndex("default", index)]
    with running(Service([Embedder("tiny", model)], [], served, beside=beside)) as started:
        yield started


def test_sparse_vectors(server: Running) -> None:
    model = server.service.indexes[0].index.encoders.sparse
    for role, encode in (("document", model.encode_document), ("query", model.encode_query)):
        found = server.client.post("/embed_sparse", json={"inputs": TEXTS[:3], "prompt_name": role}).json()
        wanted = encode(TEXTS[:3])
        for row, (indices, values) in zip(found, wanted, strict=True):
            assert [entry["index"] for entry in row] == indices.tolist()
            assert [entry["value"] for entry in row] == pytest.approx(values.tolist(), rel=1e-4)


def test_token_vectors_of_a_late_model(server: Running) -> None:
    model = server.service.indexes[0].index.encoders.late
    found = server.client.post("/embed_all", json={"inputs": TEXTS[:3], "model": "colbert"}).json()
    for got, wanted in zip(found, model.encode_document(TEXTS[:3]), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)
    plain = server.client.post("/embed_all", json={"inputs": "a"}).json()
    assert len(plain[0][0]) == 32  # the bi-encoder's own token vectors, as before


def test_search_by_every_way(server: Running) -> None:
    info = server.client.get("/info").json()
    assert info["ways"] == {"default": ["words", "dense", "sparse", "late"]}
    assert info["models"]["splade"]["kind"] == "sparse"
    for by in (None, ["sparse"], ["late"], ["sparse", "late"]):
        hits = server.client.post("/search", json={"query": TEXTS[2], "by": by, "k": 3}).json()["hits"]
        wanted = server.service.indexes[0].index.search(TEXTS[2], 3, by=by)
        assert [hit["id"] for hit in hits] == [hit.id for hit in wanted]
        assert hits[0]["ranks"] == wanted[0].ranks
    [hit] = server.client.post("/search", json={"query": TEXTS[2], "k": 1, "around": "document"}).json()["hits"]
    assert hit["text"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed_sparse", {"inputs": []}, 422),
        ("/embed_sparse", {"inputs": "a", "model": "tiny"}, 404),
        ("/embed_sparse", {"inputs": "a", "prompt_name": "passage"}, 422),
        ("/embed_sparse", {"inputs": "word " * 500, "truncate": False}, 413),
        ("/embed_all", {"inputs": [[1, 2]], "model": "colbert"}, 422),
        ("/search", {"query": "a", "by": ["splade"]}, 422),
    ],
)
def test_what_is_refused(server: Running, path: str, body: dict[str, Any], status: int) -> None:
    answer = server.client.post(path, json=body)
    assert answer.status_code == status, answer.text
