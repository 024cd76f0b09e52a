"""Hostile HTTP: whatever is sent, the answer is an error in the API's own shape, and /health never waits for it."""

import argparse
import asyncio
import json
from collections import Counter
from typing import Any

from attack.pulse import Pulse
from attack.serving import LOST, Answer, ask, exchange, health, served
from attack.verdict import Verdict

MAX_HEALTH_S = 0.5  # on two busy cores, while a body of 2 MB is refused
UPGRADE = (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"))
KEY = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")


def bodies() -> dict[str, tuple[str, bytes]]:
    """Return bodies of up to 2 MB that are wrong in as many places as possible, with their paths."""
    return {
        "390,000 nulls for texts": ("/embed", b'{"inputs":[' + b",".join([b"null"] * 390_000) + b"]}"),
        "650,000 empty documents": ("/documents", b'{"documents":[' + b",".join([b"{}"] * 650_000) + b"]}"),
        "900,000 token ids": ("/embed", b'{"inputs":[' + b",".join([b"1"] * 900_000) + b"]}"),
        "600,000 empty rows of token ids": ("/embed", b'{"inputs":[' + b",".join([b"[]"] * 600_000) + b"]}"),
        "180,000 unknown fields": ("/search", _object(b'"f%d":0', 180_000)),
        "120,000 fields of metadata": ("/documents", _document(b'"f%d":{}', 120_000)),
        "400,000 nulls for ids": ("/v2/rerank", b'{"query":1,"documents":[' + b",".join([b"null"] * 390_000) + b"]}"),
        "a million brackets": ("/embed", b"[" * 1_000_000),
        "a number of 1,900,000 digits": ("/embed", b'{"inputs":' + b"9" * 1_900_000 + b"}"),
        "a text of 1,900,000 characters": ("/v1/embeddings", b'{"model":"model","input":"' + b"a" * 1_900_000 + b'"}'),
        "a text without an end": ("/v1/embeddings", b'{"model":"model","input":"' + b"\\n" * 900_000),
    }


def _object(field: bytes, number: int) -> bytes:
    return b"{" + b",".join(field % n for n in range(number)) + b"}"


def _document(field: bytes, number: int) -> bytes:
    return b'{"documents":[{"text":"a","metadata":' + _object(field, number) + b"}]}"


def run(options: argparse.Namespace) -> Verdict:
    """Send everything to one server."""
    verdict = Verdict("http")
    with served(options) as server:
        asyncio.run(_large_bodies(server.port, verdict))
        asyncio.run(_malformed(server.port, verdict))
        asyncio.run(_websocket(server.port, verdict))
        verdict.expect(server.process.poll() is None, "the server ended")
    return verdict


async def _large_bodies(port: int, verdict: Verdict) -> None:
    """One after another, then four of each at once, while /health is asked all the time."""
    slowest: dict[str, float] = {}
    statuses: Counter[str] = Counter()
    for name, (path, body) in bodies().items():
        async with Pulse(port, every_s=0.01) as pulse:
            answers = [await ask(port, "POST", path, body)]
            answers += await asyncio.gather(*[ask(port, "POST", path, body) for _ in range(4)])
            await asyncio.sleep(0.05)
        slowest[name] = round(pulse.slowest_s(), 3)
        statuses.update(str(answer.status) for answer in answers)
        for answer in answers:
            _expect_error(verdict, name, answer, (400, 413, 422, 429))
        verdict.expect(pulse.slowest_s() < MAX_HEALTH_S, f"{name}: /health took {pulse.slowest_s():.2f} s")
    verdict.counts |= {"large bodies": dict(statuses), "slowest /health in s": slowest}


async def _malformed(port: int, verdict: Verdict) -> None:
    """Requests that are no HTTP, or JSON that is no JSON."""
    raw = {
        "no request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "a header of 1 MB": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        "two lengths": b"POST /embed HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "a length and chunks": b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a length below zero": b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    }
    statuses: dict[str, int] = {}
    for name, request in raw.items():
        answer = await exchange(port, request, 20)
        statuses[name] = answer.status
        is_refused = answer.status in (400, 408, 413, 415, 422, 431)
        # a megabyte that nobody reads: the connection may end before the answer is through
        verdict.expect(is_refused or (answer.status == LOST and len(request) > 10**6), f"{name}: {answer.status}")
    contents: list[Any] = [b"", b"{", b"\xff\xfe", b"nul", b'"a"', b"[]", b"0", b'{"inputs":"\\ud800"}', b"NaN"]
    for path in ("/embed", "/v1/embeddings", "/v2/rerank", "/search", "/documents", "/similarities"):
        for content in contents:
            answer = await ask(port, "POST", path, content)
            allowed = (200,) if content == b'{"inputs":"\\ud800"}' and path == "/embed" else (400, 422)
            _expect_error(verdict, f"{content!r} to {path}", answer, allowed)
    verdict.counts |= {"malformed requests": statuses, "malformed bodies": 6 * len(contents)}
    verdict.expect(await health(port) < MAX_HEALTH_S, "/health does not answer afterwards")


async def _websocket(port: int, verdict: Verdict) -> None:
    paths = ("/", "/health", "/embed", "/ws", "/documents/a")
    answers = [await ask(port, "GET", path, headers=(*UPGRADE, KEY)) for path in paths]
    verdict.counts["WebSocket handshakes"] = dict(Counter(str(answer.status) for answer in answers))
    for path, answer in zip(paths, answers, strict=True):
        verdict.expect(400 <= answer.status < 500, f"a WebSocket handshake at {path} got {answer.status}")


def _expect_error(verdict: Verdict, name: str, answer: Answer, allowed: tuple[int, ...]) -> None:
    verdict.expect(answer.status in allowed, f"{name}: {answer.status} instead of one of {allowed}")
    if answer.status != 200:
        try:
            content = json.loads(answer.body)
            is_error = bool({"error", "message"} & set(content)) and b"Traceback" not in answer.body
        except ValueError:
            is_error = False
        verdict.expect(is_error, f"{name}: {answer.body[:80]!r} is not an error in the API's shape")
