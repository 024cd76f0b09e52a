"""Bodies that are wrong in many places: sizes are checked before shapes, shapes up to the first error."""

import copy
import json
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from pydantic import ValidationError

from munjang.server.bodies import BRACKETS_PER_TEXT, check_brackets, check_sizes
from munjang.server.errors import Refused
from munjang.server.limits import RequestLimits
from munjang.server.routes.cohere import CohereRerank
from munjang.server.routes.documents import Documents
from munjang.server.routes.tei import TEIEmbed

LIMITS = RequestLimits(max_texts=3, max_text_chars=5, max_fields=2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"inputs": [None] * 4}, "inputs: 4 members; at most 3 are allowed."),
        ({"inputs": [1] * 6}, "inputs: 6 token ids; at most 5 are allowed."),
        ({"inputs": [[1], [2] * 6]}, "inputs.1: 6 token ids; at most 5 are allowed."),
        ({"a": 1, "b": 2, "c": 3}, "body: 3 fields; at most 2 are allowed."),
        ({"documents": [{"metadata": {"a": 1, "b": 2, "c": 3}}]}, "documents.0.metadata: 3 fields; at most 2"),
        ([None] * 4, "body: 4 members; at most 3"),
    ],
)
def test_too_many_members(value: Any, message: str) -> None:
    with pytest.raises(Refused, match=message.replace(".", r"\.")) as raised:
        check_sizes(value, LIMITS)
    assert raised.value.kind == "too_large"


@pytest.mark.parametrize("value", [{"inputs": [[1] * 5] * 3}, {"documents": [{"metadata": {"a": 1, "b": 2}}]}, 7, "a"])
def test_sizes_within_the_limits(value: Any) -> None:
    before = copy.deepcopy(value)
    check_sizes(value, LIMITS)
    assert value == before


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (TEIEmbed, {"inputs": [None] * 2000}),
        (TEIEmbed, {"inputs": [[]] * 1000 + [[None] * 1000] * 1000}),
        (CohereRerank, {"model": "m", "query": "a", "documents": [None] * 2000}),
        (Documents, {"documents": [{}] * 2000}),
    ],
)
def test_shapes_are_checked_up_to_the_first_error(body: Any, value: Any) -> None:
    """One error for each way in which the value might have been meant, not one for each member."""
    with pytest.raises(ValidationError) as raised:
        body.model_validate(value)
    assert raised.value.error_count() <= 5


def test_large_bodies_are_refused_by_their_size(server: Any) -> None:
    nulls = b'{"inputs":[' + b",".join([b"null"] * 390_000) + b"]}"
    documents = b'{"documents":[' + b",".join([b"{}"] * 650_000) + b"]}"
    for path, body in (("/embed", nulls), ("/v1/embeddings", nulls), ("/documents", documents)):
        answer = server.client.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert "are allowed" in answer.text
    brackets = server.client.post("/embed", content=b"[" * 1_000_000, headers={"content-type": "application/json"})
    assert brackets.status_code == 413
    deep = server.client.post("/embed", content=b"[" * 500, headers={"content-type": "application/json"})
    assert deep.status_code == 422


def test_brackets_are_counted_before_anything_is_made() -> None:
    """Those in texts don't count, however they are quoted."""
    limit = BRACKETS_PER_TEXT * LIMITS.max_texts + LIMITS.max_fields
    for text in ("[{" * limit, '\\"[{' * limit, "\\\\" * limit + "[" * limit):
        check_brackets(json.dumps({"inputs": [text, "a"]}).encode(), LIMITS)
    check_brackets(b"[" * limit, LIMITS)
    for body in (b"[" * (limit + 1), b'{"a":"\\"","b":[' + b"{}," * limit + b"]}", b'"a"[{' * limit):
        with pytest.raises(Refused, match=f"lists and objects; at most {limit} are allowed"):
            check_brackets(body, LIMITS)
