"""Searching over HTTP: the hits of the index itself."""

from collections.abc import Callable
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
from munjang.server.service import Service
from munjang.server.views import ServedIndex
from tests.server.routes.searching import TEXTS
from tests.server.running import Running, running


def hits(server: Running, **body: Any) -> list[dict[str, Any]]:
    answer = server.client.post("/search", json=body)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["hits"]
    return found


def test_the_same_hits_as_the_index(searching: Running, scorer: CrossEncoder) -> None:
    index, query = searching.service.indexes[0].index, TEXTS[3]
    plain = {"query": query, "k": 5, "candidates": 20}
    for asked, wanted in (
        (plain, index.search(query, 5, 20)),
        ({**plain, "where": "year >= 2010"}, index.search(query, 5, 20, "year >= 2010")),
        ({**plain, "by": ["dense"]}, index.search(query, 5, 20, by="dense")),
        ({**plain, "weights": {"words": 2.0}}, index.search(query, 5, 20, weights={"words": 2.0})),
        ({**plain, "fusion": "ranks", "diversity": 0.5}, index.search(query, 5, 20, fusion="ranks", diversity=0.5)),
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


def test_a_re_ranker_that_states_its_weight(model: BiEncoder, make: Callable[..., Path]) -> None:
    half = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu", threads=1)
    half.model.config = {**half.model.config, "munjang_rerank_weight": 0.5}
    index = Index.open("memory:", model)
    index.add(TEXTS)
    with running(
        Service([Embedder("tiny", model)], [Reranker("ranker", half)], [ServedIndex("default", index)])
    ) as started:
        for by in (["dense"], ["words", "dense"]):
            found = hits(started, query=TEXTS[3], k=20, candidates=20, rerank=True, by=by)
            wanted = index.search(TEXTS[3], 20, 20, rerank=half, by=by)
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
        assert "weight in the final order" in described["description"]
    half.model.config = {**half.model.config, "munjang_rerank_weight": "much"}
    with pytest.raises(CheckpointError, match="should be a number from 0 to 1, not 'much'"):
        Reranker("ranker", half)


def test_an_index_needs_its_model(searching: Running, scorer: CrossEncoder) -> None:
    with pytest.raises(InputError, match="needs its own model"):
        Service([], [Reranker("ranker", scorer)], searching.service.indexes)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"query": ""}, 200),
        ({"query": "'; drop table x; --", "where": "year = 2001"}, 200),
        ({"query": "\x00\x07"}, 200),
        ({"query": "a" * 2001}, 413),
        ({"query": "a", "k": 0}, 422),
        ({"query": "a", "k": 10**9}, 422),
        ({"query": "a", "kk": 1}, 422),
        ({"query": "a", "where": "year ="}, 422),
        ({"query": "a", "where": "nothing = 1"}, 422),
        ({"query": "a", "where": "(" * 5000}, 422),
        ({"query": "a", "rerank": "other"}, 404),
        ({"query": "a", "rerank": True, "rerank_weight": 1.1}, 422),
        ({"query": "a", "rerank": True, "rerank_weight": -0.1}, 422),
        ({"query": "a", "rerank": True, "rerank_weight": "much"}, 422),
        ({"query": "a", "rerank": True, "rerank_weight": None}, 200),
        ({"query": "a", "rerank_weight": 0.5}, 422),
    ],
)
def test_bad_input(body: dict[str, Any], status: int, searching: Running) -> None:
    answer = searching.client.post("/search", json=body)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert set(answer.json()) == {"error", "error_type"}
        assert "Traceback" not in answer.text
    assert searching.client.get("/documents").json()["passages"] == len(TEXTS)
