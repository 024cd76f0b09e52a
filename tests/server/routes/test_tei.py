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


@pytest.mark.parametrize("path", ["/", "/invocations"])
def test_one_address_for_everything(path: str, server: Any) -> None:
    """Hosts of one model post every kind of body to one address; it is told by its fields."""
    bodies = {
        "/embed": {"inputs": TEXTS},
        "/similarity": {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}},
        "/rerank": {"query": "hello", "texts": TEXTS},
        "/v1/embeddings": {"input": TEXTS[0]},
    }
    for own, body in bodies.items():
        assert server.client.post(path, json=body).json() == server.client.post(own, json=body).json()
    documents = {"query": "hello", "documents": TEXTS, "top_n": 1}
    for place in (path, "/rerank"):
        answer = server.client.post(place, json=documents).json()
        assert answer["results"] == server.client.post("/v1/rerank", json=documents).json()["results"]
    for body in ({}, {"inputs": 5}, [], "text", {"documents": ["a"]}, {"query": "a"}):
        answer = server.client.post(path, json=body)
        assert answer.status_code == 422
        assert "(" not in answer.json()["error"].partition(":")[0]
    assert server.client.get("/ping").status_code == 200


def test_what_was_cut_is_said(server: Any, model: BiEncoder) -> None:
    long = " ".join(["hello"] * 150 + ["world"] * 40)
    answer = server.client.post("/embed", json={"inputs": ["a", long]})
    assert answer.headers["x-truncated-texts"] == "1"
    assert "x-truncated-texts" not in server.client.post("/embed", json={"inputs": "a"}).headers
    assert server.client.post("/rerank", json={"query": "a", "texts": [long]}).headers["x-truncated-texts"] == "0"
    openai = server.client.post("/v1/embeddings", json={"input": ["a", long]}).json()
    assert openai["truncated"] == [1]
    body = {"inputs": [long], "truncation_direction": "Left"}
    end = server.client.post("/embed", json=body).json()
    assert np.abs(np.array(end[0]) - answer.json()[1]).max() > 1e-4
    room = model.max_length - 2
    text = long[-room * 3 :]
    while model.tokenizer.bodies([text])[1][0] > room:
        text = text.partition(" ")[2]
    np.testing.assert_allclose(end, model.encode([text], normalize=True), atol=1e-5)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embed", {"inputs": "a", "normalize": 1}),
        ("/embed", {"inputs": "a", "dimensions": "8"}),
        ("/rerank", {"query": "a", "texts": ["a"], "return_text": 0}),
        ("/rerank", {"query": "a", "documents": ["a"], "top_n": True}),
        ("/tokenize", {"inputs": "a", "add_special_tokens": "yes"}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["a"]}, "parameters": {"truncate": 0}}),
        ("/search", {"query": "a", "k": 2.5}),
        ("/search", {"query": "a", "min_score": "0.5"}),
    ],
)
def test_another_type_is_refused(server: Any, path: str, body: Any) -> None:
    """As the description says: 0 is no false, "8" no number."""
    assert server.client.post(path, json=body).status_code == 422


def test_bounds_are_in_the_description(server: Any) -> None:
    """And 8.0 is a whole number there: JSON Schema says so."""
    schemas = server.client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Search"]["properties"]["k"] == {
        "type": "integer",
        "maximum": 1000.0,
        "minimum": 1.0,
        "title": "K",
        "default": 10,
    }
    assert schemas["TEIEmbed"]["properties"]["dimensions"]["anyOf"][0] == {"type": "integer", "enum": [8, 16, 32]}
    assert server.client.post("/embed", json={"inputs": "a", "dimensions": 8.0}).status_code == 200
