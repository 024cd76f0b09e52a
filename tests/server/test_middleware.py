"""Access, sizes of bodies and the log of requests."""

import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.server.limits import AccessRules, host_name
from munjang.server.middleware import LOG
from munjang.server.service import Service
from munjang.server.tenants import Keyring
from tests.server.running import Running, Watched, running

KEY = {"authorization": "Bearer the-key"}


@pytest.fixture(scope="module")
def locked(model: BiEncoder) -> Iterator[Running]:
    """A server with two keys and small bodies."""
    rules = AccessRules(Keyring(["old-key", "the-key"]), max_body_bytes=1000)
    with running(Service([Watched("tiny", model)]), rules) as started:
        yield started


def post(server: Running, text: str = "a", **headers: str) -> Any:
    return server.client.post("/embed", json={"inputs": text}, headers=headers)


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", "Bearer the-keyy", "Basic the-key", "the-key", "Bearer é"]
)
def test_wrong_key(given: str, locked: Running) -> None:
    answer = post(locked, **({"authorization": given.encode()} if given else {}))  # type: ignore[arg-type]
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error_type"] == "Unauthorized"


def test_right_key(locked: Running) -> None:
    assert post(locked, **KEY).status_code == 200
    assert post(locked, authorization="bearer old-key").status_code == 200
    for path in ("/health", "/ready"):
        assert locked.client.get(path).status_code == 200
    for path in ("/info", "/metrics", "/v1/models", "/openapi.json"):
        assert locked.client.get(path).status_code == 401
    assert locked.client.get("/v1/models").json()["error"]["code"] == "invalid_api_key"
    assert set(locked.client.post("/v2/rerank").json()) == {"message"}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_wrong_host(host: str, locked: Running) -> None:
    answer = post(locked, host=host, **KEY)
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["localhost:1234", "LOCALHOST", "127.0.0.1", "[::1]:8080"])
def test_right_host(host: str, locked: Running) -> None:
    assert post(locked, host=host, **KEY).status_code == 200
    assert host_name(host) in AccessRules().hosts


def test_who_watches_needs_no_name(locked: Running) -> None:
    assert locked.client.get("/health", headers={"host": "10.1.2.3:80"}).status_code == 200
    assert locked.client.get("/info", headers={"host": "10.1.2.3:80", **KEY}).status_code == 403


def test_too_many_at_once(model: BiEncoder) -> None:
    """Bodies are counted before they are read: who only opens requests can't fill the memory."""
    with running(Service([Watched("tiny", model)]), AccessRules(max_requests=1)) as started:
        port = int(started.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12")
            while (answer := post(started)).status_code == 200:  # until the server has seen the other one
                pass
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


def test_huge_body(locked: Running) -> None:
    assert post(locked, "x" * 2000, **KEY).status_code == 413
    pieces = (b"x" * 100 for _ in range(1000))  # no Content-Length to go by
    answer = locked.client.post("/v1/embeddings", content=pieces, headers=KEY)
    assert answer.status_code == 413
    assert "1000 bytes" in answer.json()["error"]["message"]


def test_a_body_that_never_comes(model: BiEncoder) -> None:
    with running(Service([Watched("tiny", model)]), AccessRules(body_timeout_s=0.2)) as started:
        port = int(started.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12")
            assert b" 408 " in raw.recv(4096).splitlines()[0]


def test_no_other_site_may_read(locked: Running) -> None:
    answer = post(locked, origin="http://evil.example", **KEY)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST", **KEY}
    assert locked.client.options("/embed", headers=asked).status_code == 405


def test_request_ids(locked: Running) -> None:
    assert post(locked, **KEY, **{"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = post(locked, **KEY, **{"x-request-id": "a b\t{"}).headers["x-request-id"]
    assert len(made) == 32
    assert post(locked).headers["x-request-id"] not in ("", made)


def test_logs_hold_no_texts(locked: Running, caplog: pytest.LogCaptureFixture) -> None:
    ids = ("one", "two", "three")
    one, two, three = ({**KEY, "x-request-id": each} for each in ids)
    with caplog.at_level(logging.INFO, LOG.name):
        post(locked, "secret", **one)
        locked.client.post("/embed?q=secret", json={"inputs": {"secret": 1}}, headers=two)
        locked.client.get("/secret", headers=three)
        # A line is written after its answer: ours may be late, and one of the test before may still come
        until(lambda: all(f'"request_id": "{each}"' in caplog.text for each in ids))
    lines = [json.loads(record.message) for record in caplog.records if record.name == LOG.name]
    found = {line["request_id"]: line for line in lines}
    assert [(found[each]["path"], found[each]["status"]) for each in ids] == [
        ("/embed", 200),
        ("/embed", 422),
        ("unknown", 404),
    ]
    assert (found["one"]["model"], found["one"]["texts"]) == ("tiny", 1)
    assert "secret" not in caplog.text


def test_no_stack_trace(model: BiEncoder, caplog: pytest.LogCaptureFixture) -> None:
    """A model that fails is 424 and 500 in the APIs' own shapes; a defect of ours is 500; neither says more."""

    class Broken(Watched):
        def compute(self, parts: Any) -> Any:
            raise RuntimeError("secret weights")

    broken = Broken("tiny", model)
    with running(Service([broken])) as started, caplog.at_level(logging.INFO, LOG.name):
        answer = post(started)
        assert (answer.status_code, answer.json()["error_type"]) == (424, "Backend")
        body = {"model": "tiny", "input": "a"}
        failed = started.client.post("/v1/embeddings", json=body)
        assert (failed.status_code, failed.json()["error"]["type"]) == (500, "server_error")
        broken.finish = None  # type: ignore[assignment, method-assign]
        started.service.batcher.queues["tiny"].compute = super(Broken, broken).compute
        crashed = started.client.post("/v1/embeddings", json=body)
        assert (crashed.status_code, crashed.json()["error"]["type"]) == (500, "server_error")
        for each in (answer, failed, crashed):
            assert "secret" not in each.text
            assert "Traceback" not in each.text
            assert each.headers["x-request-id"]
        until(lambda: '"error": "TypeError"' in caplog.text)  # written after the answer, while the level still holds
    assert "secret" not in caplog.text
    assert '"error": "TypeError"' in caplog.text


def until(is_so: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
