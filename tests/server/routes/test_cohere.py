"""Cohere's re-ranking, by its own client and by hand."""

from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
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


def test_embeddings_by_the_official_client(server: Any, model: BiEncoder) -> None:
    cohere = pytest.importorskip("cohere")
    client = cohere.ClientV2(api_key="any", base_url=server.url)
    kinds = ["float", "binary", "ubinary", "base64"]
    found = client.embed(texts=TEXTS, model="tiny", input_type="search_document", embedding_types=kinds)
    expected = model.encode(TEXTS)
    np.testing.assert_allclose(found.embeddings.float_, expected, atol=1e-5)
    assert found.embeddings.ubinary == np.packbits(expected > 0, axis=1).tolist()
    assert found.embeddings.binary == (np.packbits(expected > 0, axis=1).astype(int) - 128).tolist()
    cut = client.embed(texts=TEXTS, model="tiny", input_type="search_query", output_dimension=8)
    assert np.shape(cut.embeddings.float_) == (3, 8)
    with pytest.raises(cohere.errors.BadRequestError, match="Input should be 'float'"):
        client.embed(texts=TEXTS, model="tiny", input_type="search_query", embedding_types=["int8"])


def test_long_documents_are_cut_where_asked_and_it_is_said(server: Any, scorer: CrossEncoder) -> None:
    documents = ["hello world the cat hello world", "a"]
    body = {"query": "hello", "documents": documents, "max_tokens_per_doc": 2}
    answer = server.client.post("/v2/rerank", json=body).json()
    assert answer["meta"]["warnings"] == ["Texts that were too long and were cut: 0."]
    size = int(scorer.tokenizer.bodies(["hello"])[1][0])
    body["max_tokens_per_doc"] = size
    scores = {
        hit["index"]: hit["relevance_score"] for hit in server.client.post("/v2/rerank", json=body).json()["results"]
    }
    short = server.client.post("/v2/rerank", json={"query": "hello", "documents": ["hello"]}).json()
    assert scores[0] == pytest.approx(short["results"][0]["relevance_score"], abs=1e-5)
    whole = server.client.post("/v2/rerank", json={"query": "hello", "documents": documents}).json()
    assert "warnings" not in whole["meta"]
    many = server.client.post("/v2/rerank", json=body | {"max_tokens_per_doc": 2**63}).json()
    assert "warnings" not in many["meta"]
    assert server.client.post("/v2/embed", json={"texts": documents, "max_tokens": 2**63}).status_code == 200
    for asked in ({"images": ["x"]}, {"texts": ["a"], "embedding_types": ["other"]}, {}, {"texts": []}):
        assert server.client.post("/v2/embed", json=asked).status_code == 400
