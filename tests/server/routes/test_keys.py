"""Keys over HTTP: one's own use, and for an admin all keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.server.embedder import Embedder
from munjang.server.limits import AccessRules
from munjang.server.service import Service
from munjang.server.tenants import Keyring
from tests.server.running import Running, running

ADMIN = {"authorization": "Bearer the-key"}


@pytest.fixture
def server(model: BiEncoder, tmp_path: Path) -> Iterator[Running]:
    with running(Service([Embedder("tiny", model)]), AccessRules(Keyring(["the-key"], tmp_path / "keys"))) as started:
        yield started


def test_a_key_comes_and_goes(server: Running, tmp_path: Path) -> None:
    client = server.client
    made = client.post("/keys", json={"name": "alice", "tokens_per_minute": 1000}, headers=ADMIN)
    assert made.status_code == 200, made.text
    secret = made.json()["key"]
    assert secret not in (tmp_path / "keys").read_text()
    own = {"authorization": f"Bearer {secret}"}
    assert client.get("/keys", headers=ADMIN).json()["can_change"]
    assert client.post("/embed", json={"inputs": "hello world"}, headers=own).status_code == 200
    usage = client.get("/usage", headers=own).json()
    assert (usage["name"], usage["scopes"], usage["requests"]) == ("alice", ["read"], 2)
    assert usage["tokens"] > 2
    assert "digest" not in usage
    (shown,) = client.get("/keys", headers=ADMIN).json()["keys"]
    assert shown == usage
    assert client.get("/keys", headers=own).status_code == 403
    assert client.post("/keys", json={"name": "bob"}, headers=own).status_code == 403
    assert client.delete("/keys/nobody", headers=ADMIN).status_code == 404
    assert client.delete("/keys/alice", headers=ADMIN).json() == {"revoked": "alice"}
    assert client.get("/usage", headers=own).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "a b"},
        {"name": "a", "scopes": ["all"]},
        {"name": "a", "scopes": []},
        {"name": "a", "tokens_per_minute": 0},
        {"name": "a", "only": {"x": []}},
        {"name": "a", "digest": "0" * 64},
    ],
)
def test_wrong_keys(body: dict[str, object], server: Running) -> None:
    answer = server.client.post("/keys", json=body, headers=ADMIN)
    assert answer.status_code == 422, answer.text
    assert server.client.get("/keys", headers=ADMIN).json()["keys"] == []


def test_a_file_that_can_not_be_written(server: Running, tmp_path: Path) -> None:
    (tmp_path / "keys.lock").mkdir()
    answer = server.client.post("/keys", json={"name": "a"}, headers=ADMIN)
    assert (answer.status_code, "can't be changed here" in answer.text) == (424, True)


def test_without_a_file(model: BiEncoder) -> None:
    with running(Service([Embedder("tiny", model)])) as server:
        assert server.client.get("/keys").json() == {"keys": [], "can_change": False}
        assert server.client.get("/usage").json()["name"] == "everyone"
        assert "start it with --keys" in server.client.post("/keys", json={"name": "a"}).text
