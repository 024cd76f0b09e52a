"""Connections: bounds of how many there are, by address and in all, and of how long each may say or read nothing.

A request that is half sent costs its sender nothing and us a descriptor. So whoever waits longest without a whole
request makes room for who comes; where all are busy, who comes is answered /health alone.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from munjang.server.errors import Refused
from munjang.server.limits import OPEN_PATHS, ConnectionLimits
from munjang.server.middleware import refuse

SWEEP_S = 0.5
RESERVED_FILES, MAX_FILES = 256, 65_536  # descriptors for the index, the models and the log; what we ask for
MAX_BEYOND = 64  # connections that may ask for /health where all others are busy
LINES_OF_A_CHUNK = 2  # its size, and the end of what it holds
TINY = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connections:
    """The open connections of one server, on its event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.max_connections = min(limits.max_connections, _room_for_files())
        self.open: dict[Connection, None] = {}  # oldest first
        self.by_address: Counter[str] = Counter()
        self._sweeping: asyncio.TimerHandle | None = None

    def protocol(self) -> Any:
        """Return what makes a Connection, as uvicorn calls it."""
        return partial(Connection, self)

    def add(self, new: "Connection") -> None:
        """Take a connection, and end another where there are too many."""
        self.open[new] = None
        self.by_address[new.address] += 1
        if self.by_address[new.address] > self.limits.max_connections_per_address:
            self._make_room(new, new.address)
        elif len(self.open) > self.max_connections:
            self._make_room(new, max(self.by_address, key=lambda address: self.by_address[address]))
        if self._sweeping is None:
            self._sweeping = new.loop.call_later(SWEEP_S, self._sweep)

    def remove(self, gone: "Connection") -> None:
        """Forget a connection that is closed."""
        if gone in self.open:
            del self.open[gone]
            self.by_address[gone.address] -= 1
            if not self.by_address[gone.address]:
                del self.by_address[gone.address]

    def _make_room(self, new: "Connection", address: str) -> None:
        waiting = (one for one in self.open if one is not new and one.address == address and one.is_waiting)
        oldest = next(waiting, None)
        if oldest is not None:
            oldest.transport.abort()
            self.remove(oldest)
        elif len(self.open) > self.max_connections + MAX_BEYOND:
            new.transport.abort()
            self.remove(new)
        else:
            new.app = _health_alone(new.app)

    def _sweep(self) -> None:
        """End those that keep us waiting: for a request, or until they read their answer."""
        self._sweeping = None
        for one in list(self.open):
            one.end_if_late(self.limits)
        if self.open:
            self._sweeping = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)


class Connection(H11Protocol):
    """A connection that is known to the others, and ends when its client is too slow."""

    def __init__(self, others: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.others, self.address = others, ""
        self.waiting_since_s = self.loop.time()
        self.unread_bytes, self.unread_due_s = 0, 0.0  # of the answer, and when they must be gone
        self.num_lines = 0  # of the request that comes in

    @property
    def is_waiting(self) -> bool:
        """Tell whether no whole head of a request is here."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note who it is."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self.others.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Refuse a body in very many chunks, before they are taken apart."""
        self.num_lines = data.count(b"\r\n") + (0 if self.is_waiting else self.num_lines)
        if self.num_lines > LINES_OF_A_CHUNK * self.others.limits.max_chunks and self._is_chunked(data):
            if not self.transport.is_closing():
                self.transport.write(TINY)
            self.transport.close()
            return
        super().data_received(data)

    def _is_chunked(self, data: bytes) -> bool:
        if self.is_waiting:  # its head is not known yet
            return b"chunked" in data.lower()
        return any(name == b"transfer-encoding" for name, _ in self.headers or ())

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since_s = self.loop.time()
        super().on_response_complete()

    def end_if_late(self, limits: ConnectionLimits) -> None:
        """Close where a head takes too long, or an answer is not read."""
        now_s, unread_bytes = self.loop.time(), self.transport.get_write_buffer_size()
        if unread_bytes > self.unread_bytes or not unread_bytes:  # more was written, or all is gone
            self.unread_due_s = now_s + limits.answer_timeout_s + unread_bytes / limits.min_answer_bytes_per_s
        self.unread_bytes = unread_bytes
        if unread_bytes and now_s > self.unread_due_s:
            self.transport.abort()
        elif self.is_waiting and not unread_bytes and now_s - self.waiting_since_s > limits.header_timeout_s:
            if not self.transport.is_closing():
                self.transport.write(LATE if self.conn.trailing_data[0] else b"")  # who said nothing hears nothing
            self.transport.close()


def _health_alone(app: Any) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in OPEN_PATHS:
            await app(scope, receive, send)
        else:
            refused = Refused("overloaded", "Too many connections at once; try again in 1 s.", retry_s=1)
            await refuse(refused, scope["path"], send)

    return answer


def _room_for_files() -> int:
    """Ask for more descriptors where we may, and return how many connections fit into them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MAX_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    room = MAX_FILES if soft == resource.RLIM_INFINITY else soft
    return max(room - RESERVED_FILES, room // 2)
