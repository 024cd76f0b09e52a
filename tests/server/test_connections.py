"""Connections that send or read too slowly, and more of them than there is room for."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.server.limits import AccessRules, ConnectionLimits
from munjang.server.service import Service
from tests.server.running import Running, Watched, running

HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = HALF + b"\r\n"


@contextmanager
def served(model: BiEncoder, rules: AccessRules | None = None, **limits: float) -> Iterator[Running]:
    with running(Service([Watched("tiny", model)]), rules, limits=ConnectionLimits(**limits)) as started:  # type: ignore[arg-type]
        yield started


def connect(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def read(raw: socket.socket) -> bytes:
    """Read until the server closes."""
    found = b""
    with suppress(ConnectionResetError):  # it is closed while something was not read there
        while part := raw.recv(65_536):
            found += part
    return found


def is_ended(raw: socket.socket) -> bool:
    """Tell whether the server has closed a connection that is written to, not read."""
    time.sleep(0.1)
    try:
        raw.send(b"\r\n")
    except OSError:
        return True
    return False


@pytest.mark.parametrize(("sent", "answer"), [(HALF, b"HTTP/1.1 408 "), (b"", b"")])
def test_a_head_that_does_not_come(sent: bytes, answer: bytes, model: BiEncoder) -> None:
    with served(model, header_timeout_s=0.3) as server, connect(server) as raw:
        raw.sendall(sent)
        start = time.monotonic()
        assert read(raw)[: len(answer) or None] == answer
        assert time.monotonic() - start < 5


def test_a_second_head_that_does_not_come(model: BiEncoder) -> None:
    with served(model, header_timeout_s=0.3) as server, connect(server) as raw:
        raw.sendall(WHOLE + HALF)
        answers = read(raw)
        assert answers.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answers


def test_health_is_served_beyond_many_half_open_requests(model: BiEncoder) -> None:
    """Twice as many as there is room for: the oldest of them go, the newest stay."""
    with served(model, max_connections=8) as server, ExitStack() as stack:
        raws = [stack.enter_context(connect(server)) for _ in range(16)]
        for raw in raws:
            raw.sendall(HALF)
        until(lambda: server.client.get("/health").status_code == 200)
        assert read(raws[0]) == b""
        raws[-1].sendall(b"Connection: close\r\n\r\n")
        assert read(raws[-1]).startswith(b"HTTP/1.1 200 ")


def test_where_all_are_busy_health_alone_is_served(model: BiEncoder) -> None:
    with served(model, max_connections_per_address=2) as server, ExitStack() as stack:
        for _ in range(2):
            raw = stack.enter_context(connect(server))
            raw.sendall(
                HALF.replace(b"GET /health", b"POST /embed") + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            )
            assert raw.recv(100).startswith(b"HTTP/1.1 100 ")  # it is in the middle of a request
        until(lambda: server.client.get("/info").status_code == 429)
        assert server.client.get("/info").headers["retry-after"] == "1"
        assert server.client.get("/health").status_code == 200


def test_an_answer_that_nobody_reads(model: BiEncoder) -> None:
    """Two answers of 2,048 vectors: more than the kernel keeps for us."""
    with served(model, answer_timeout_s=0.3, min_answer_bytes_per_s=10**9) as server, connect(server) as raw:
        texts = b",".join([b'"a"'] * 2048)
        body = b'{"inputs":[' + texts + b"]}"
        requests = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sendall(requests * 2)
        until(lambda: is_ended(raw))


def test_bodies_that_would_fill_the_memory(model: BiEncoder) -> None:
    """Two requests hold 600 bytes each of the 1,000 that all may hold."""
    with served(model, AccessRules(max_held_bytes=1000)) as server, connect(server) as raw:
        raw.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 700\r\n\r\n" + b"x" * 600)
        until(lambda: server.client.post("/embed", content=b" " * 600).status_code == 429)
        assert server.client.post("/embed", json={"inputs": "a"}).status_code == 200


@pytest.mark.parametrize("num_parts", [1, 7])
def test_a_body_in_very_many_chunks(num_parts: int, model: BiEncoder) -> None:
    """100,000 chunks of a byte take 1.5 s to be taken apart; large ones, and lines of a plain body, are taken."""
    head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    tiny = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 100_000
    plain = b'{"inputs":"a"}' + b"\r\n" * 30_000
    with served(model) as server:
        raw = connect(server)
        size = -(-len(tiny) // num_parts)
        with suppress(OSError):  # it is closed before all is sent
            for start in range(0, len(tiny), size):
                raw.sendall(tiny[start : start + size])
                time.sleep(0.05)
        assert read(raw)[:13] in (b"HTTP/1.1 400 ", b"")
        for body in (
            b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%b\r\n0\r\n\r\n" % (14, plain[:14]),
            b"Content-Length: %d\r\n\r\n%b" % (len(plain), plain),
        ):
            raw = connect(server)
            raw.sendall(head + body)
            assert read(raw).startswith(b"HTTP/1.1 200 ")
        assert server.client.get("/health").status_code == 200


def test_limits_are_checked() -> None:
    with pytest.raises(InputError, match="header_timeout_s must be above 0, not 0"):
        ConnectionLimits(header_timeout_s=0)
