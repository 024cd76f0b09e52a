"""Tokens, token vectors and scores of pairs, as clients of text-embeddings-inference ask."""

import unicodedata
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

TEXTS = ["hello world", "나는 오늘 학교에 간다", "the cat"]


def test_tokens_and_back(server: Any, model: BiEncoder) -> None:
    rows = server.client.post("/tokenize", json={"inputs": TEXTS}).json()
    assert [[token["id"] for token in row] for row in rows] == [row.tolist() for row in model.tokenize(TEXTS).sequences]
    assert [token["special"] for token in rows[0]] == [True, *[False] * (len(rows[0]) - 2), True]
    for text, row in zip(TEXTS, rows, strict=True):
        inner = [token for token in row if not token["special"]]
        assert (inner[0]["start"], inner[-1]["stop"]) == (0, len(text))
    bare = server.client.post("/tokenize", json={"inputs": TEXTS[0], "add_special_tokens": False}).json()
    assert [token["id"] for token in bare[0]] == [token["id"] for token in rows[0][1:-1]]
    back = server.client.post("/decode", json={"ids": [[token["id"] for token in row] for row in rows]}).json()
    assert [unicodedata.normalize("NFC", text) for text in back] == TEXTS  # this tokenizer takes syllables apart
    whole = server.client.post("/decode", json={"ids": [t["id"] for t in rows[0]], "skip_special_tokens": False})
    assert whole.json()[0].startswith("[CLS]")
    long = server.client.post("/tokenize", json={"inputs": "hello " * 300}).json()
    assert len(long[0]) > model.max_length
    assert server.client.post("/tokenize", json={"inputs": "a", "model": "ranker"}).status_code == 200


def test_a_vector_for_each_token(server: Any, model: BiEncoder) -> None:
    found = server.client.post("/embed_all", json={"inputs": TEXTS}).json()
    wanted = model.encode(TEXTS, output="tokens")
    assert [len(vectors) for vectors in found] == [len(vectors) for vectors in wanted]
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-5)
    together = server.client.post("/embed", json={"inputs": TEXTS}).json()
    np.testing.assert_allclose(together, model.encode(TEXTS, normalize=True), atol=1e-5)


def test_scores_of_pairs(server: Any, scorer: CrossEncoder) -> None:
    pairs = [["hello", text] for text in TEXTS]
    logits = scorer.predict([tuple(pair) for pair in pairs], activation="Identity").tolist()
    raw = server.client.post("/predict", json={"inputs": pairs, "raw_scores": True}).json()
    assert [row[0]["score"] for row in raw] == pytest.approx(logits, abs=1e-4)
    (one,) = server.client.post("/predict", json={"inputs": pairs[1]}).json()
    assert one["score"] == pytest.approx(1 / (1 + np.exp(-logits[1])), abs=1e-5)
    assert one["label"] == "LABEL_0"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/tokenize", {"inputs": []}, 422),
        ("/tokenize", {"inputs": "a", "model": "other"}, 404),
        ("/tokenize", {"inputs": "a", "prompt_name": "none"}, 422),
        ("/decode", {"ids": [10**9]}, 422),
        ("/decode", {"ids": [[-1]]}, 422),
        ("/decode", {"ids": "text"}, 422),
        ("/embed_all", {"inputs": []}, 422),
        ("/embed_all", {"inputs": "hello " * 300, "truncate": False}, 413),
        ("/predict", {"inputs": "a"}, 422),
        ("/predict", {"inputs": ["a"]}, 422),
        ("/predict", {"inputs": [["a", "b"], ["c"]]}, 422),
        ("/predict", {"inputs": []}, 422),
        ("/predict", {"inputs": [["a", "b"]], "model": "tiny"}, 404),
    ],
)
def test_errors(path: str, body: dict[str, Any], status: int, server: Any) -> None:
    answer = server.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "error_type"}
