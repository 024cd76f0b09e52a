"""/openapi.json names what the loaded models take, so that what it allows is not refused."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from munjang.bi_encoder import BiEncoder
from munjang.server.embedder import Embedder
from munjang.server.routes.files import NAMES
from munjang.server.service import Service
from tests.server.running import Running, running

LENIENT = Path(__file__).parents[2] / "attack" / "schemathesis.toml"


def properties(started: Running, body: str) -> Any:
    return started.client.get("/openapi.json").json()["components"]["schemas"][body]["properties"]


def test_sizes_and_prompts_are_those_of_the_model(model: BiEncoder) -> None:
    embedder = Embedder("tiny", model, dimensions=[8])
    with running(Service([embedder])) as started:
        body = properties(started, "TEIEmbed")
        assert body["dimensions"]["anyOf"] == [{"type": "integer", "enum": [8, model.dimension]}, {"type": "null"}]
        names = [{"type": "string", "enum": sorted(model.prompts)}] if model.prompts else []
        assert body["prompt_name"]["anyOf"] == [*names, {"type": "null"}]
        for size, status in ((8, 200), (model.dimension, 200), (7, 422)):
            asked = {"inputs": "a", "dimensions": size}
            assert started.client.post("/embed", json=asked).status_code == status
        again = properties(started, "TEIEmbed")
        assert again == body


def test_token_ids_are_of_the_vocabulary(server: Running, model: BiEncoder) -> None:
    kinds = [kind for kind in properties(server, "TEIEmbed")["inputs"]["anyOf"] if kind["type"] == "array"]
    ids = [kind["items"] for kind in kinds if kind["items"]["type"] == "integer"]
    rows = [kind["items"]["items"] for kind in kinds if kind["items"]["type"] == "array"]
    last = max(model.tokenizer.vocab_size, server.service.rerankers[0].scorer.tokenizer.vocab_size) - 1
    assert [each["maximum"] for each in (*ids, *rows)] == [last, last]


def test_names_of_files_are_those_that_are_read() -> None:
    assert all(re.search(NAMES, name) for name in ("a.txt", "b/a.PDF", "a.b.Html", "..md"))
    assert not any(re.search(NAMES, name) for name in (".txt", "a.exe", "b/.pdf", "pdf", "a.pdf.gz", "axtxt"))


def test_leniency_of_the_attack_is_for_routes_that_exist_and_has_reasons(server: Running) -> None:
    """A valid request may be refused at these alone; at all others schemathesis takes a refusal for a failure."""
    text = LENIENT.read_text(encoding="utf-8")
    operations = tomllib.loads(text)["operations"]
    assert text.count("[[operations]] # ") == len(operations)
    lenient = {path for each in operations for path in each["include-path"] if "positive" in str(each["checks"])}
    embed = {"/", "/invocations", "/embed", "/embed_all", "/v1/embeddings", "/embeddings"}
    assert lenient == embed | {"/search", "/documents", "/files"}
    assert lenient <= set(server.client.get("/openapi.json").json()["paths"])
