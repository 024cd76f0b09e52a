"""ASGI middleware before every route: request ids, hosts, keys, size of bodies, a log line, never a stack trace."""

import asyncio
import json
import logging
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from munjang.server.errors import ClientGone, Refused, answer, refusal
from munjang.server.gate import Gate
from munjang.server.limits import OPEN_PATHS, AccessRules
from munjang.server.metrics import Metrics
from munjang.server.shares import CLIENT, client_of

LOG = logging.getLogger("munjang.server")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
MAX_NAMED_CUTS = 100  # of a header, which proxies bound at 8 KB
CLIENT_GONE = 499  # nginx's number; nobody reads the answer, the log does


class Middleware:
    """Reads the whole body first, so that routes never see one that is too large or too slow."""

    def __init__(self, app: ASGIApp, rules: AccessRules, metrics: Metrics) -> None:
        self.app, self.rules, self.metrics = app, rules, metrics
        self.num_requests = self.num_held_bytes = 0
        self.gate = Gate()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        sent_id = headers.get("x-request-id", "")
        id = sent_id if REQUEST_ID.match(sent_id) else uuid.uuid4().hex
        facts: dict[str, Any] = {}  # that routes add to the log
        scope.setdefault("state", {})["facts"] = facts
        started_s, status, body = time.monotonic(), 0, bytearray()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = [(b"x-request-id", id.encode()), *_cut_header(scope["state"].get("cut_rows", ()))]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        self.num_requests += 1
        try:
            if self.num_requests > self.rules.max_requests and scope["path"] not in OPEN_PATHS:
                raise Refused("overloaded", "Too many requests at once; try again in 1 s.", retry_s=1)
            self.rules.check(scope, headers)
            CLIENT.set(client_of(scope))
            await asyncio.wait_for(self._read(scope["path"], receive, body), self.rules.body_timeout_s)
            if scope["path"] not in OPEN_PATHS:
                await self.gate.enter()
            await self.app(scope, _replaying(bytes(body), receive), sending)
        except ClientGone:
            status = CLIENT_GONE
        except TimeoutError:
            await refuse(Refused("slow", "The request body did not arrive in time."), scope["path"], sending)
        except Exception as error:
            facts |= _where(error)
            if not status:  # else the answer has begun already
                await refuse(refusal(error), scope["path"], sending)
        finally:
            self.num_requests -= 1
            self.num_held_bytes -= len(body)
            self._count_key(scope, facts, status)
            self._record(id, scope, status, time.monotonic() - started_s, facts)

    async def _read(self, path: str, receive: Receive, body: bytearray) -> None:
        """Read a body, counted with those of all other requests that are here."""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            body += part
            self.num_held_bytes += len(part)
            self.rules.check_size(path, len(body))
            if self.num_held_bytes > self.rules.max_held_bytes:
                raise Refused("overloaded", "Too many large requests at once; try again in 1 s.", retry_s=1)
            if not message.get("more_body", False):
                return

    def _count_key(self, scope: Scope, facts: dict[str, Any], status: int) -> None:
        """Count what a key has used; a server without keys has nobody to tell apart."""
        key = scope["state"].get("key")
        if key is None or self.rules.keyring.is_open:
            return
        num_tokens = facts.get("tokens", 0)
        self.rules.keyring.record(key, num_tokens)
        self.metrics.count("munjang_key_requests", key=key.name, status=str(status))
        self.metrics.count("munjang_key_tokens", num_tokens, key=key.name)
        facts["key"] = key.name

    def _record(self, id: str, scope: Scope, status: int, seconds: float, facts: dict[str, Any]) -> None:
        # the route's pattern: a path or its query may hold a text
        path = getattr(scope.get("route"), "path", "unknown")
        self.metrics.count("te_request_count", method=path)
        self.metrics.observe("te_request_duration", seconds, method=path)
        if status == CLIENT_GONE:
            self.metrics.count("te_request_cancelled", method=path)
        elif status < 400:
            self.metrics.count("te_request_success", method=path)
        else:
            self.metrics.count("te_request_failure", err=str(status))
        if not LOG.isEnabledFor(logging.INFO):
            return
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request_id": id,
            "method": scope["method"],
            "path": path,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        LOG.info(json.dumps(line | facts))


async def refuse(refused: Refused, path: str, send: Send) -> None:
    """Answer with an error, in the shape of the path's API."""
    status, content, more = answer(refused, path)
    body = to_json(content)
    headers: Sequence[tuple[str, str]] = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        *more.items(),
    ]
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Replay the body that was read already, then pass on what comes: that the client has gone."""
    is_read = False

    async def replayed() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _cut_header(rows: Sequence[int]) -> list[tuple[bytes, bytes]]:
    """Name the texts that were cut, by number: most answers have no other place for it."""
    if not rows:
        return []
    more = ",..." if len(rows) > MAX_NAMED_CUTS else ""
    return [(b"x-truncated-texts", (",".join(map(str, rows[:MAX_NAMED_CUTS])) + more).encode())]


def _where(error: Exception) -> dict[str, Any]:
    """Return class and place of an error for the log; not its message, which may quote a text."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return {"error": type(error).__name__, "at": place}
