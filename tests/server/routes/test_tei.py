"""The API of text-embeddings-inference, as its clients ask."""

from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

TEXTS = ["hello world", "나는 오늘 학교에 간다", "the cat"]


def test_embed(server: Any, model: BiEncoder) -> None:
    found = server.client.post("/embed", json={"inputs": TEXTS}).json()
    np.testing.assert_allclose(found, model.encode(TEXTS, normalize=True), atol=1e-5)
    raw = server.client.post("/embed", json={"inputs": TEXTS[0], "normalize": False, "truncate": True}).json()
    np.testing.assert_allclose(raw, model.encode(TEXTS[:1], normalize=False), rtol=1e-5, atol=1e-5)
    cut = server.client.post("/embed", json={"inputs": TEXTS, "dimensions": 16}).json()
    np.testing.assert_allclose(cut, model.encode(TEXTS, normalize=True, truncate_dim=16), atol=1e-5)


def test_rerank(server: Any, scorer: CrossEncoder) -> None:
    body = {"query": "hello", "texts": TEXTS}
    logits = scorer.predict([("hello", text) for text in TEXTS], activation="Identity")
    order = np.argsort(-logits).tolist()
    plain = server.client.post("/rerank", json=body).json()
    assert [hit["index"] for hit in plain] == order
    assert [hit["score"] for hit in plain] == pytest.approx((1 / (1 + np.exp(-logits[order]))).tolist(), abs=1e-5)
    assert set(plain[0]) == {"index", "score"}
    raw = server.client.post("/rerank", json={**body, "raw_scores": True, "return_text": True}).json()
    assert [hit["score"] for hit in raw] == pytest.approx(logits[order].tolist(), abs=1e-4)
    assert [hit["text"] for hit in raw] == [TEXTS[place] for place in order]


def test_similarity(server: Any, model: BiEncoder) -> None:
    body = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}}
    found = server.client.post("/similarity", json=body).json()
    assert found == pytest.approx(model.similarity(TEXTS[:1], TEXTS[1:])[0].tolist(), abs=1e-5)


def test_half_an_emoji(server: Any, model: BiEncoder) -> None:
    """JSON can hold what is no character; it is read as U+FFFD, as everywhere in Munjang, and answered so."""
    headers, escaped = {"content-type": "application/json"}, b"a \\ud83d b"
    body = b'{"query": "a", "texts": ["' + escaped + b'"], "return_text": true}'
    assert server.client.post("/rerank", content=body, headers=headers).json()[0]["text"] == "a \ufffd b"
    found = server.client.post("/embed", content=b'{"inputs": "' + escaped + b'"}', headers=headers).json()
    np.testing.assert_allclose(found, model.encode(["a \ufffd b"], normalize=True), atol=1e-5)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", {}, 422),
        ("/embed", {"inputs": []}, 422),
        ("/embed", {"inputs": "a", "prompt_name": "none"}, 422),
        ("/embed", {"inputs": "a", "dimensions": 9}, 422),
        ("/embed", {"inputs": ["a"] * 65}, 413),
        ("/embed", {"inputs": "hello " * 300, "truncate": False}, 413),
        ("/embed", {"inputs": "a", "model": "other"}, 404),
        ("/rerank", {"query": "a"}, 422),
        ("/rerank", {"query": "a", "texts": []}, 422),
        ("/rerank", {"query": "a", "texts": ["b"] * 65}, 413),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, 422),
        ("/search", {"query": "a"}, 404),
        ("/nothing", {}, 404),
        ("/info", {}, 405),
    ],
)
def test_errors(path: str, body: dict[str, Any], status: int, server: Any) -> None:
    answer = server.client.post(path, json=body)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "error_type"}


def test_info_health_ready(server: Any, model: BiEncoder) -> None:
    info = server.client.get("/info").json()
    assert (info["model_id"], info["max_input_length"], info["max_client_batch_size"]) == ("tiny", 100, 64)
    assert info["models"]["tiny"]["dimensions"] == [8, 16]
    assert info["models"]["ranker"]["kind"] == "reranker"
    assert server.client.get("/health").status_code == 200
    assert server.client.get("/ready").json() == {"ready": True}


def test_metrics_count(server: Any) -> None:
    def value(name: str) -> float:
        lines = server.client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    name = 'te_request_count{method="/embed"}'
    before, texts = value(name), value('te_embed_count{model="tiny"}')
    server.client.post("/embed", json={"inputs": ["a", "b"]})
    assert value(name) == before + 1
    assert value('te_embed_count{model="tiny"}') == texts + 2
    assert value("te_queue_size") == 0


def test_an_error_names_fields_as_the_client_does(server: Any) -> None:
    for body in ({"inputs": 5}, {"inputs": [1.5, "a"]}, {"inputs": {"a": 1}}):
        answer = server.client.post("/embed", json=body)
        assert answer.status_code in (400, 422)
        assert "inputs" in answer.text
        assert "function-" not in answer.text
