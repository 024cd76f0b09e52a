"""Keys: what each may do and see, how much, and that none of them sees another's documents on any route."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from munjang.index import Index
from munjang.server import tenants
from munjang.server.app import create_app
from munjang.server.embedder import Embedder
from munjang.server.errors import Refused
from munjang.server.limits import AccessRules
from munjang.server.reranker import Reranker
from munjang.server.service import Service
from munjang.server.tenants import Key, Keyring, add_key, needed_scope, read_keys, revoke_key
from munjang.server.views import ServedIndex
from tests.server.running import Running, running

SECRET = "xylophone"  # in every text, id and value of Alice
BOB = "a text of Bob about music"


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    path, both = tmp_path / "keys.json", ("read", "write")
    return {
        "alice": add_key(path, Key("alice", scopes=both, only={"tenant": "alice"})),
        "bob": add_key(path, Key("bob", scopes=both, only={"tenant": "bob"})),
        "reader": add_key(path, Key("reader", indexes=("public",))),
        "admin": add_key(path, Key("admin", scopes=("read", "write", "admin"))),
    }


@pytest.fixture
def shared(model: BiEncoder, scorer: CrossEncoder, keys: dict[str, str], tmp_path: Path) -> Iterator[Running]:
    """Two indexes: one that Alice and Bob share, and a public one."""
    notes, public = Index.open("memory:", model), Index.open("memory:", model)
    public.add(["a public text"], ["p"])
    indexes = [ServedIndex("notes", notes), ServedIndex("public", public)]
    service = Service([Embedder("tiny", model)], [Reranker("ranker", scorer)], indexes)
    with running(service, AccessRules(Keyring(path=tmp_path / "keys.json"))) as started:
        documents = [{"id": f"{SECRET}/{n}", "text": f"{SECRET} and music {n}"} for n in range(5)]
        documents[0]["metadata"] = {"note": SECRET}
        assert ask(started, keys["alice"], "POST", "/documents", {"documents": documents}).status_code == 200
        body = {"documents": [{"id": "b", "text": BOB}]}
        assert ask(started, keys["bob"], "POST", "/documents", body).status_code == 200
        yield started


def ask(server: Running, key: str, method: str, path: str, body: Any = None) -> httpx.Response:
    return server.client.request(method, path, json=body, headers={"authorization": f"Bearer {key}"})


# For every route: what Bob sends to reach Alice's documents. A route that is new has to be added.
ATTEMPTS: dict[tuple[str, str], list[tuple[str, Any]]] = {
    ("POST", "/search"): [
        ("/search", {"query": f"{SECRET} and music", "k": 50, "index": "notes"}),
        ("/search", {"query": f"{SECRET} and music", "by": ["words"], "group": "passage", "rerank": True}),
        ("/search", {"query": "music", "where": "tenant = 'alice'"}),
        ("/search", {"query": "music", "where": "tenant = 'bob') or (tenant = 'alice'"}),
        ("/search", {"query": "music", "where": f"document_id = '{SECRET}/0' or note is not null"}),
        ("/search", {"query": "music", "where": "not (tenant = 'bob')", "diversity": 0.5}),
    ],
    ("POST", "/documents"): [
        ("/documents", {"documents": [{"id": f"{SECRET}/1", "text": "mine now"}]}),
        ("/documents", {"documents": [{"id": "c", "text": "x", "metadata": {"tenant": "alice"}}]}),
    ],
    ("DELETE", "/documents"): [("/documents", {"ids": [f"{SECRET}/1", f"{SECRET}/2"]})],
    ("DELETE", "/documents/{id}"): [(f"/documents/{SECRET}/1", None)],
    ("GET", "/documents"): [("/documents", None), (f"/documents?id={SECRET}/1", None), ("/documents?index=x", None)],
    ("GET", "/documents/{id}"): [(f"/documents/{SECRET}/1", None)],
    ("GET", "/map"): [("/map", None), ("/map?index=notes", None)],
    ("POST", "/files"): [(f"/files?name={SECRET}.txt", None), ("/files?name=a.txt&index=x", None)],
    ("GET", "/usage"): [("/usage", None)],
    ("GET", "/keys"): [("/keys", None)],
    ("POST", "/keys"): [("/keys", {"name": "mallory", "scopes": ["admin"]})],
    ("DELETE", "/keys/{name}"): [("/keys/alice", None)],
    ("GET", "/metrics"): [("/metrics", None)],
    ("GET", "/info"): [("/info", None)],
    ("GET", "/v1/models"): [("/v1/models", None)],
    ("GET", "/v1/models/{name}"): [("/v1/models/tiny", None)],
    ("GET", "/health"): [("/health", None)],
    ("GET", "/ready"): [("/ready", None)],
    ("GET", "/ping"): [("/ping", None)],
}
# These read nothing but their own body
WITHOUT_DOCUMENTS = {
    "/",
    "/embed",
    "/embed_all",
    "/embed_sparse",
    "/embeddings",
    "/invocations",
    "/predict",
    "/rerank",
    "/similarity",
    "/similarities",
    "/tokenize",
    "/decode",
    "/v1/embeddings",
    "/v1/rerank",
    "/v2/embed",
    "/v2/rerank",
}


def routes(server: Running) -> list[tuple[str, str]]:
    paths = create_app(server.service, AccessRules()).app.openapi()["paths"]  # type: ignore[attr-defined]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def test_every_route_keeps_tenants_apart(shared: Running, keys: dict[str, str]) -> None:
    assert {pair for pair in routes(shared) if pair[1] not in WITHOUT_DOCUMENTS} == set(ATTEMPTS)
    alice = ask(shared, keys["alice"], "POST", "/search", {"query": f"{SECRET} and music", "k": 50}).json()["hits"]
    assert len(alice) == 5
    ask(shared, keys["alice"], "GET", "/map")  # so that it is kept
    for (method, _), attempts in ATTEMPTS.items():
        for path, body in attempts:
            answer = ask(shared, keys["bob"], method, path, body)
            sent = json.dumps(body) + path
            shown = answer.text if SECRET not in sent else answer.text.replace(f"{SECRET}/1", "")
            assert SECRET not in shown, (method, path, body)
            assert answer.status_code < 500, (method, path, body)
    again = ask(shared, keys["alice"], "POST", "/search", {"query": f"{SECRET} and music", "k": 50}).json()["hits"]
    assert [hit["text"] for hit in again] == [hit["text"] for hit in alice]
    found = ask(shared, keys["bob"], "POST", "/search", {"query": "music", "k": 50}).json()["hits"]
    assert [hit["text"] for hit in found] == [BOB]
    assert ask(shared, keys["bob"], "GET", "/documents").json()["passages"] == 1
    assert ask(shared, keys["bob"], "GET", "/map").json()["num_passages"] == 1
    assert ask(shared, keys["admin"], "GET", "/documents").json()["passages"] == 6


def test_the_page_holds_nothing(shared: Running) -> None:
    for path in ("/", "/page/main.js", "/openapi.json"):
        assert SECRET not in shared.client.get(path).text


def test_indexes_of_a_key(shared: Running, keys: dict[str, str]) -> None:
    reader = keys["reader"]
    assert ask(shared, reader, "GET", "/info").json()["indexes"] == ["public"]
    assert ask(shared, keys["admin"], "GET", "/info").json()["indexes"] == ["notes", "public"]
    (hit,) = ask(shared, reader, "POST", "/search", {"query": "text"}).json()["hits"]
    assert hit["document_id"] == "p"
    assert ask(shared, reader, "POST", "/search", {"query": "text", "index": "notes"}).status_code == 404
    assert ask(shared, reader, "GET", "/map?index=notes").status_code == 404
    # Bob's documents have a field that the public index doesn't know
    assert ask(shared, keys["bob"], "POST", "/search", {"query": "text", "index": "public"}).json() == {"hits": []}
    assert ask(shared, keys["bob"], "GET", "/documents?index=public").json()["passages"] == 0
    assert ask(shared, keys["bob"], "GET", "/documents/p?index=public").status_code == 404


def test_scopes(shared: Running, keys: dict[str, str]) -> None:
    body = {"documents": [{"text": "x"}]}
    refused = ask(shared, keys["reader"], "POST", "/documents", {**body, "index": "public"})
    assert (refused.status_code, refused.json()["error"]) == (403, "The key reader has no scope 'write'.")
    assert ask(shared, keys["reader"], "DELETE", "/documents/p").status_code == 403
    assert ask(shared, keys["bob"], "GET", "/metrics").status_code == 403
    assert ask(shared, "wrong", "GET", "/info").status_code == 401
    text = ask(shared, keys["admin"], "GET", "/metrics").text
    assert 'munjang_key_requests{key="alice",status="200"}' in text
    assert 'munjang_key_tokens{key="bob"} 0' not in text
    assert shared.client.get("/info", headers={"authorization": f"Basic {keys['bob']}"}).status_code == 401


def test_every_route_has_the_right_scope(shared: Running) -> None:
    needed = {(method, path): needed_scope(method, path) for method, path in routes(shared)}
    writing = {("POST", "/documents"), ("DELETE", "/documents"), ("DELETE", "/documents/{id}"), ("POST", "/files")}
    assert {pair for pair, scope in needed.items() if scope == "write"} == writing
    assert {pair for pair, scope in needed.items() if scope == "admin"} == {
        ("GET", "/metrics"),
        ("GET", "/keys"),
        ("POST", "/keys"),
        ("DELETE", "/keys/{name}"),
    }


def test_an_id_of_another_is_refused(shared: Running, keys: dict[str, str]) -> None:
    taken = ask(shared, keys["bob"], "POST", "/documents", {"documents": [{"id": f"{SECRET}/1", "text": "x"}]})
    assert (taken.status_code, taken.json()["error"]) == (
        403,
        f"The id '{SECRET}/1' can't be used by this key; choose another.",
    )
    own = ask(shared, keys["bob"], "POST", "/documents", {"documents": [{"id": "b", "text": "changed"}]})
    assert own.json() == {"ids": ["b"]}
    assert ask(shared, keys["bob"], "GET", "/documents/b").json()["metadata"]["tenant"] == "bob"
    assert ask(shared, keys["bob"], "DELETE", "/documents/b").json() == {"deleted": 1}


def test_a_key_that_is_revoked_or_new(
    shared: Running, keys: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, "LOOK_S", 0.0)
    path = tmp_path / "keys.json"
    revoke_key(path, "bob")
    new = add_key(path, Key("carol"))
    assert ask(shared, keys["bob"], "GET", "/info").status_code == 401
    assert ask(shared, new, "GET", "/info").status_code == 200
    path.write_text("half a fi")
    assert ask(shared, new, "GET", "/info").status_code == 200


def test_limits_of_a_minute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = 100.0
    monkeypatch.setattr(tenants.time, "monotonic", lambda: now)
    path = tmp_path / "keys.json"
    secret = add_key(path, Key("slow", requests_per_minute=2, tokens_per_minute=60))
    keyring = Keyring(path=path)

    def admitted() -> Key:
        return keyring.admit(f"Bearer {secret}", "POST", "/embed")

    keyring.record(admitted(), 10)
    admitted()
    with pytest.raises(Refused, match="2 requests a minute; try again in 30 s") as refused:
        admitted()
    assert refused.value.retry_s in (30, 31)
    now += 31
    keyring.record(admitted(), 200)
    now += 60
    with pytest.raises(Refused, match="60 tokens a minute"):
        admitted()
    now += 120
    admitted()
    assert (keyring.used["slow"].num_requests, keyring.used["slow"].num_tokens) == (4, 210)


def test_files_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    assert read_keys(path) == []
    secret = add_key(path, Key("a", only={"year": 2020, "open": True}))
    assert secret not in path.read_text()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(InputError, match="has a key named 'a' already"):
        add_key(path, Key("a"))
    with pytest.raises(InputError, match="Unknown key 'b'; choose from a"):
        revoke_key(path, "b")
    assert [key.only for key in read_keys(path)] == [{"year": 2020, "open": True}]
    for content in ("[]", "{", '{"keys": [{"name": "x", "nothing": 1}]}', '{"keys": [1]}'):
        path.write_text(content)
        with pytest.raises(InputError, match="is not a file of keys"):
            read_keys(path)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"name": ""}, "can't be the name"),
        ({"name": 'a"b'}, "can't be the name"),
        ({"name": "a", "scopes": ("all",)}, "Unknown scope 'all'; choose from admin, read, write"),
        ({"name": "a", "scopes": ()}, "needs a scope"),
        ({"name": "a", "tokens_per_minute": 0}, "at least 1"),
    ],
)
def test_wrong_keys(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Key(**values)
