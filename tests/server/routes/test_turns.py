"""Every route that takes many texts reads and answers in steps, so that others get their turn in between."""

from collections.abc import Iterator
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.index import Index
from munjang.server.steps import PIECE_CHARS, advance

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

TEXTS = ["hello the cat 나는 " * 120] * 64  # 112,000 characters
MIN_STEPS = sum(map(len, TEXTS)) // PIECE_CHARS
WORK: dict[str, Any] = {
    "/embed": {"inputs": TEXTS},
    "/embed_all": {"inputs": TEXTS},
    "/tokenize": {"inputs": TEXTS},
    "/decode": {"ids": [[5] * 2000] * 64},
    "/similarities": {"texts": TEXTS},
    "/similarity": {"inputs": {"source_sentence": "a", "sentences": TEXTS}},
    "/rerank": {"query": "a", "texts": TEXTS},
    "/predict": {"inputs": [[text, "a"] for text in TEXTS]},
    "/v1/embeddings": {"input": TEXTS},
    "/v2/embed": {"texts": TEXTS},
    "/documents": {"documents": [{"text": text, "id": str(row)} for row, text in enumerate(TEXTS)]},
}


@pytest.fixture(scope="module")
def served(model: BiEncoder, scorer: CrossEncoder) -> Iterator[Any]:
    from munjang.server.embedder import Embedder
    from munjang.server.reranker import Reranker
    from munjang.server.service import Service
    from munjang.server.views import ServedIndex
    from tests.server.running import running

    index = ServedIndex("index", Index.open("memory:", model))
    service = Service([Embedder("tiny", model)], [Reranker("ranker", scorer)], [index])
    with running(service) as started:
        yield started


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The steps that were taken in threads, by the name of the work."""
    from munjang.server import turns

    counts: dict[str, int] = {}

    def one_at_a_time(steps: Any) -> list[Any]:
        counts[steps.__name__] = counts.get(steps.__name__, 0) + 1
        return advance(steps, 1e-9)

    monkeypatch.setattr(turns, "advance", one_at_a_time)
    return counts


@pytest.mark.parametrize("path", WORK)
def test_texts_are_read_in_steps(path: str, served: Any, steps: dict[str, int]) -> None:
    answer = served.client.post(path, json=WORK[path])
    assert answer.status_code == 200, answer.text[:300]
    assert max(steps.values()) >= MIN_STEPS


def test_large_answers_are_written_in_steps(served: Any, steps: dict[str, int]) -> None:
    answer = served.client.post("/embed_all", json={"inputs": TEXTS})
    assert steps["lists_of_vectors"] >= sum(map(len, answer.json()))
    steps.clear()
    served.client.post("/documents", json={"documents": [{"text": "zebra " * 1000, "id": str(n)} for n in range(20)]})
    hits = served.client.post(
        "/search", json={"query": "zebra", "by": ["words"], "k": 20, "candidates": 1000, "around": "document"}
    ).json()["hits"]
    assert steps["listed"] >= len(hits) > 10


def test_a_search_waits_for_one_turn_at_the_index(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a re-ranker, which computes in between, for two."""
    served.client.post("/documents", json={"documents": [{"text": "hello", "id": "1"}]})
    index = served.service.indexes[0]
    run, turns = index.turns.run, []

    def counted(function: Any) -> Any:
        turns.append(function)
        return run(function)

    monkeypatch.setattr(index.turns, "run", counted)
    for rerank, num_turns in ((False, 1), (True, 2)):
        turns.clear()
        answer = served.client.post("/search", json={"query": "hello", "k": 1, "rerank": rerank})
        assert (len(answer.json()["hits"]), len(turns)) == (1, num_turns)
