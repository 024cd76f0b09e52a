"""OpenAI's API, by its own client and by hand."""

import base64
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder

openai = pytest.importorskip("openai")
TEXTS = ["hello world", "나는 오늘 학교에 간다", "the cat"]


@pytest.fixture(scope="module")
def client(server: Any) -> Any:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def test_official_client(client: Any, model: BiEncoder) -> None:
    """It asks for base64 unless it is told otherwise, and decodes that itself."""
    for options in ({}, {"encoding_format": "float"}):
        found = client.embeddings.create(model="tiny", input=TEXTS, **options)
        np.testing.assert_allclose([row.embedding for row in found.data], model.encode(TEXTS), atol=1e-5)
        assert [row.index for row in found.data] == [0, 1, 2]
        assert found.model == "tiny"
        num_tokens = sum(map(len, model.tokenize(TEXTS).sequences))
        assert (found.usage.prompt_tokens, found.usage.total_tokens) == (num_tokens, num_tokens)


def test_one_string_and_token_arrays(client: Any, model: BiEncoder) -> None:
    rows = [row.tolist()[1:-1] for row in model.tokenize(TEXTS).sequences]
    expected = model.encode(TEXTS)
    for given, wanted in ((TEXTS[0], expected[:1]), (rows, expected), (rows[1], expected[1:2])):
        found = client.embeddings.create(model="tiny", input=given)
        np.testing.assert_allclose([row.embedding for row in found.data], wanted, atol=1e-5)


def test_base64_is_little_endian_float32(server: Any, model: BiEncoder) -> None:
    body = {"model": "tiny", "input": TEXTS[0], "encoding_format": "base64"}
    (row,) = server.client.post("/v1/embeddings", json=body).json()["data"]
    found = np.frombuffer(base64.b64decode(row["embedding"]), "<f4")
    np.testing.assert_allclose(found, model.encode(TEXTS[0]), atol=1e-5)


def test_dimensions_only_where_declared(client: Any, model: BiEncoder) -> None:
    found = client.embeddings.create(model="tiny", input=TEXTS, dimensions=8)
    expected = model.encode(TEXTS, normalize=True, truncate_dim=8)  # as OpenAI's, which stay of unit length
    np.testing.assert_allclose([row.embedding for row in found.data], expected, atol=1e-5)
    full = client.embeddings.create(model="plain", input=TEXTS, dimensions=model.dimension)
    assert len(full.data[0].embedding) == model.dimension
    for name, hint in (("tiny", "choose from 8, 16"), ("plain", "leave dimensions out")):
        with pytest.raises(openai.BadRequestError, match=hint) as caught:
            client.embeddings.create(model=name, input=TEXTS, dimensions=9)
        assert caught.value.param == "dimensions"


def test_models(client: Any) -> None:
    assert [each.id for each in client.models.list()] == ["tiny", "plain", "ranker"]
    assert client.models.retrieve("tiny").owned_by == "munjang"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_unknown_model(client: Any) -> None:
    for name in ("other", "ranker"):
        with pytest.raises(openai.NotFoundError, match="choose from plain, tiny") as caught:
            client.embeddings.create(model=name, input="x")
        assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "tiny"}, 400, "input"),
        ({"model": "tiny", "input": []}, 400, "input"),
        ({"model": "tiny", "input": ""}, 400, "input"),
        ({"model": "tiny", "input": ["a", ""]}, 400, "input"),
        ({"model": "tiny", "input": {"a": 1}}, 400, "input"),
        ({"model": "tiny", "input": [1.5]}, 400, "input"),
        ({"model": "tiny", "input": [[10**12]]}, 400, None),
        ({"model": "tiny", "input": "a", "encoding_format": "int8"}, 400, "encoding_format"),
        ({"model": "tiny", "input": "a", "dimensions": 0}, 400, "dimensions"),
        ({"model": 3, "input": "a"}, 400, "model"),
        ({"model": "tiny", "input": ["a"] * 65}, 413, "input"),
        ({"model": "tiny", "input": "a" * 2001}, 413, "input"),
    ],
)
def test_bad_requests(body: dict[str, Any], status: int, param: str | None, server: Any) -> None:
    answer = server.client.post("/v1/embeddings", json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert len(error["message"]) < 300


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'"text"', b"null", b"[" * 500])
def test_bad_json(content: bytes, server: Any) -> None:
    answer = server.client.post("/v1/embeddings", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_form_is_no_json(server: Any) -> None:
    """What a page of another site could send without asking is refused."""
    body = b'{"model": "tiny", "input": "a"}'
    answer = server.client.post("/v1/embeddings", content=body, headers={"content-type": "text/plain"})
    assert answer.status_code == 400


def test_defaults_of_clients_are_taken(server: Any) -> None:
    named = {"input": "hello", "model": "tiny", "encoding_format": "float"}
    unnamed = {"input": "hello", "encoding_format": None, "dimensions": None}
    answers = [server.client.post("/v1/embeddings", json=body) for body in (named, unnamed)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["data"][0]["embedding"] == pytest.approx(answers[1].json()["data"][0]["embedding"])
