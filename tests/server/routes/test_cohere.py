"""Cohere's re-ranking, by its own client and by hand."""

from typing import Any

import numpy as np
import pytest

from munjang.cross_encoder import CrossEncoder

TEXTS = ["hello world", "나는 오늘 학교에 간다", "the cat"]


def test_official_client(server: Any, scorer: CrossEncoder) -> None:
    cohere = pytest.importorskip("cohere")
    client = cohere.ClientV2(api_key="any", base_url=server.url)
    logits = scorer.predict([("hello", text) for text in TEXTS], activation="Identity")
    order = np.argsort(-logits)[:2]
    found = client.rerank(model="ranker", query="hello", documents=TEXTS, top_n=2)
    assert [hit.index for hit in found.results] == order.tolist()
    expected = (1 / (1 + np.exp(-logits[order]))).tolist()
    assert [hit.relevance_score for hit in found.results] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(cohere.errors.NotFoundError):
        client.rerank(model="other", query="hello", documents=TEXTS)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "ranker", "query": "a"}, 400),
        ({"model": "ranker", "query": "a", "documents": []}, 400),
        ({"model": "ranker", "query": "a", "documents": ["b"], "top_n": 0}, 400),
        ({"model": "ranker", "query": "a", "documents": ["b"] * 65}, 413),
        ({"model": "tiny", "query": "a", "documents": ["b"]}, 404),
    ],
)
def test_errors(body: dict[str, Any], status: int, server: Any) -> None:
    answer = server.client.post("/v2/rerank", json=body)
    assert answer.status_code == status
    assert set(answer.json()) == {"message"}


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_as_objects_without_a_model(path: str, server: Any) -> None:
    documents = [{"text": text, "title": "ignored"} for text in TEXTS]
    plain = server.client.post("/v2/rerank", json={"model": "ranker", "query": "hello", "documents": TEXTS}).json()
    asked = {"query": "hello", "documents": documents, "return_documents": True, "top_n": None}
    answer = server.client.post(path, json=asked)
    assert answer.status_code == 200, answer.text
    for result, expected in zip(answer.json()["results"], plain["results"], strict=True):
        assert result.pop("document") == {"text": TEXTS[result["index"]]}
        assert result == expected
    assert server.client.post(path, json={"query": "a", "documents": [{"title": "no text"}]}).status_code == 400
