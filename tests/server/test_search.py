"""Searching and documents over HTTP: the hits of the index itself."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import CheckpointError, InputError

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
pytest.importorskip("munjang.index")
from munjang.index import Index
from munjang.index.rerank import Reranking
from munjang.server.embedder import Embedder
from munjang.server.reranker import Reranker
from munjang.server.service import Service, Sizes
from tests.server.running import Running, running
from tests.texts import ENGLISH, KOREAN

TEXTS = [*dict.fromkeys([*ENGLISH, *KOREAN])][:40]


@pytest.fixture
def searching(model: BiEncoder, scorer: CrossEncoder) -> Iterator[Running]:
    index = Index.open("memory:", model)
    index.add(TEXTS, [f"d/{n}" for n in range(len(TEXTS))], [{"year": 2000 + n} for n in range(len(TEXTS))])
    sizes = Sizes(max_texts=100, max_text_chars=2000)
    with running(Service([Embedder("tiny", model)], [Reranker("ranker", scorer)], index, sizes=sizes)) as started:
        yield started


def hits(server: Running, **body: Any) -> list[dict[str, Any]]:
    answer = server.client.post("/search", json=body)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["hits"]
    return found


def test_the_same_hits_as_the_index(searching: Running, scorer: CrossEncoder) -> None:
    index, query = searching.service.index, TEXTS[3]
    plain = {"query": query, "k": 5, "candidates": 20}
    for asked, wanted in (
        (plain, index.search(query, 5, 20)),
        ({**plain, "where": "year >= 2010"}, index.search(query, 5, 20, "year >= 2010")),
        ({**plain, "hybrid": True}, index.search(query, 5, 20, hybrid=True)),
        ({**plain, "group": "passage"}, index.search(query, 5, 20, group="passage")),
    ):
        found = hits(searching, **asked)
        assert [hit["id"] for hit in found] == [hit.id for hit in wanted]
        assert [hit["score"] for hit in found] == pytest.approx([hit.score for hit in wanted], abs=1e-5)
    for rerank in (True, "ranker"):
        found = hits(searching, **plain, rerank=rerank)
        wanted = index.search(query, 5, 20, rerank=scorer)
        assert [hit["id"] for hit in found] == [hit.id for hit in wanted]
        for name in ("score", "rerank_score"):
            assert [hit[name] for hit in found] == pytest.approx([getattr(hit, name) for hit in wanted], abs=1e-5)


def test_a_re_ranker_with_a_share(model: BiEncoder, make: Callable[..., Path]) -> None:
    half = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu", threads=1)
    half.model.config = {**half.model.config, "munjang_rerank_weight": 0.5}
    index = Index.open("memory:", model)
    index.add(TEXTS)
    with running(Service([Embedder("tiny", model)], [Reranker("ranker", half)], index)) as started:
        for hybrid in (False, True):
            found = hits(started, query=TEXTS[3], k=20, candidates=20, rerank=True, hybrid=hybrid)
            wanted = index.search(TEXTS[3], 20, 20, rerank=half, hybrid=hybrid)
            assert [hit["id"] for hit in found] == [hit.id for hit in wanted]
            assert [hit["score"] for hit in found] == pytest.approx([hit.score for hit in wanted], abs=1e-4)
            assert [hit["score"] for hit in found] != [hit["rerank_score"] for hit in found]
        for weight in (0.0, 0.8, 1.0):
            found = hits(started, query=TEXTS[3], k=20, candidates=20, rerank="ranker", rerank_weight=weight)
            wanted = index.search(TEXTS[3], 20, 20, rerank=Reranking(half, weight=weight))
            assert [hit["id"] for hit in found] == [hit.id for hit in wanted]
            assert [hit["score"] for hit in found] == pytest.approx([hit.score for hit in wanted], abs=1e-4)
        described = started.client.get("/openapi.json").json()["components"]["schemas"]["Search"]
        assert {"type": "number", "minimum": 0, "maximum": 1} in described["properties"]["rerank_weight"]["anyOf"]
        assert "share of the final order" in described["description"]
    half.model.config = {**half.model.config, "munjang_rerank_weight": "much"}
    with pytest.raises(CheckpointError, match="should be a number from 0 to 1, not 'much'"):
        Reranker("ranker", half)


def test_an_index_needs_its_model(searching: Running, scorer: CrossEncoder) -> None:
    with pytest.raises(InputError, match="needs its own model"):
        Service([], [Reranker("ranker", scorer)], searching.service.index)


def test_documents_come_and_go(searching: Running) -> None:
    client = searching.client
    before = client.get("/documents").json()
    assert before["passages"] == len(TEXTS)
    new = [{"text": f"a wholly new text {n}"} for n in range(40)]
    new[1] |= {"id": "mine/1", "metadata": {"year": 1999}}
    ids = client.post("/documents", json={"documents": new}).json()["ids"]
    assert len(set(ids)) == 40
    assert ids[1] == "mine/1"
    assert hits(searching, query="a wholly new text 1", k=1, where="year = 1999")[0]["document_id"] == "mine/1"
    shown = client.get("/documents/mine/1").json()
    assert client.get("/documents", params={"id": "mine/1"}).json() == shown
    assert client.get("/documents", params={"id": "mine/../mine/1"}).status_code == 404
    assert (shown["metadata"], shown["passages"][0]["text"]) == ({"year": 1999}, "a wholly new text 1")
    changed = {"documents": [{"id": "mine/1", "text": "changed"}]}
    assert client.post("/documents", json=changed).json() == {"ids": ["mine/1"]}
    assert client.get("/documents/mine/1").json()["passages"][0]["text"] == "changed"
    assert client.get("/documents").json()["passages"] == len(TEXTS) + 40
    assert client.delete("/documents/mine/1").json() == {"deleted": 1}
    assert client.delete("/documents/mine/1").status_code == 404
    assert client.request("DELETE", "/documents", json={"ids": ids}).json() == {"deleted": 39}
    assert client.get("/documents").json()["passages"] == len(TEXTS)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/search", {}, 422),
        ("/search", {"query": ""}, 200),
        ("/search", {"query": "'; drop table x; --", "where": "year = 2001"}, 200),
        ("/search", {"query": "\x00\x07"}, 200),
        ("/search", {"query": "a" * 2001}, 413),
        ("/search", {"query": "a", "k": 0}, 422),
        ("/search", {"query": "a", "k": 10**9}, 422),
        ("/search", {"query": "a", "kk": 1}, 422),
        ("/search", {"query": "a", "where": "year ="}, 422),
        ("/search", {"query": "a", "where": "nothing = 1"}, 422),
        ("/search", {"query": "a", "where": "(" * 5000}, 422),
        ("/search", {"query": "a", "rerank": "other"}, 404),
        ("/search", {"query": "a", "rerank": True, "rerank_weight": 1.1}, 422),
        ("/search", {"query": "a", "rerank": True, "rerank_weight": -0.1}, 422),
        ("/search", {"query": "a", "rerank": True, "rerank_weight": "much"}, 422),
        ("/search", {"query": "a", "rerank": True, "rerank_weight": None}, 200),
        ("/search", {"query": "a", "rerank_weight": 0.5}, 422),
        ("/documents", {"documents": []}, 422),
        ("/documents", {"documents": [{"text": "a", "id": ""}]}, 422),
        ("/documents", {"documents": [{"text": "a", "metadata": {"year": "text"}}]}, 422),
        ("/documents", {"documents": [{"text": "a", "metadata": {"x": {}}}]}, 422),
        ("/documents", {"documents": [{"text": "a"}] * 101}, 413),
    ],
)
def test_bad_input(path: str, body: dict[str, Any], status: int, searching: Running) -> None:
    answer = searching.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert set(answer.json()) == {"error", "error_type"}
        assert "Traceback" not in answer.text
    assert searching.client.get("/documents").json()["passages"] == len(TEXTS)
