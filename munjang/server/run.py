"""Running an application: a socket, uvicorn on it, and an orderly end on SIGTERM or Ctrl-C."""

import asyncio
import errno
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Protocol

import uvicorn
from starlette.types import ASGIApp

from munjang.errors import InputError
from munjang.server.connections import Connections
from munjang.server.garbage import leave_out_loaded
from munjang.server.limits import ConnectionLimits
from munjang.server.middleware import LOG

MAX_BACKLOG = 2048  # connections that wait to be accepted
# How long a thread of Python computes before it lets another go on. With Python's 5 ms a model, which asks for its turn
# after each step, took 124 ms for a text beside three threads that write answers; with this 30, and 12 alone
SWITCH_S = 0.0005


def bind(host: str, port: int) -> socket.socket:
    """Listen at an address; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: asyncio looks for it, and would else leave the kernel to hold every answer's body back for 40 ms
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(MAX_BACKLOG)  # here: another server may be bound to the same port, and not listen yet
    except (OSError, OverflowError) as error:
        bound.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InputError(f"Port {port} of {host} is in use; choose another with --port, or 0 for any.") from None
        raise InputError(f"Can't listen at {host}, port {port}: {error}.") from None
    return bound


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(bound: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HasReadiness(Protocol):
    """A service, or what stands for the one that is current."""

    is_ready: bool


class Server(uvicorn.Server):
    """uvicorn that says when it is ready, reloads on SIGHUP, and ends with success when it is asked to."""

    def __init__(
        self,
        app: ASGIApp,
        service: HasReadiness,
        drain_s: int,
        on_start: Callable[[], None],
        limits: ConnectionLimits | None = None,
        on_hangup: Callable[[], None] | None = None,
    ) -> None:
        connections = Connections(limits or ConnectionLimits())
        super().__init__(
            uvicorn.Config(
                app,
                http=connections.protocol(),
                ws="none",
                timeout_keep_alive=connections.limits.idle_timeout_s,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                timeout_graceful_shutdown=drain_s,
            )
        )
        self.service, self.on_start, self.on_hangup = service, on_start, on_hangup

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if self.on_hangup is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.on_hangup)
        if self.started:
            if threading.current_thread() is threading.main_thread():  # else the process is another's
                leave_out_loaded()
                sys.setswitchinterval(SWITCH_S)
            self.on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the clients that are here finish."""
        self.service.is_ready = False
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do as uvicorn, but without raising the signal again at the end: a server that drained has succeeded."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(server: Server, bound: socket.socket) -> None:
    """Serve until a signal comes."""
    asyncio.run(server.serve(sockets=[bound]))


def log_to_stderr(is_quiet: bool) -> None:
    """Log our JSON lines, and of uvicorn only what went wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOG.handlers, LOG.propagate = [handler], False
    LOG.setLevel(logging.WARNING if is_quiet else logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
