"""A real server on a free port, in a thread; a model whose batches can be held up, and which remembers them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.types import ASGIApp

from munjang.server.app import create_app
from munjang.server.embedder import Embedder
from munjang.server.limits import AccessRules, ConnectionLimits
from munjang.server.model_queue import Slice
from munjang.server.run import Server, address_of, bind
from munjang.server.service import Service


class Watched(Embedder):
    """Computes as any embedder does, once `may_go` is set, a batch at a time; `sizes` are the units of each."""

    num_at_once = 1

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.may_go, self.sizes = threading.Event(), list[int]()
        self.may_go.set()

    def compute(self, parts: Sequence[Slice]) -> list[Sequence[Any]]:
        assert self.may_go.wait(20)
        self.sizes.append(sum(len(part.units) for part in parts))
        return super().compute(parts)


@dataclass
class Running:
    """A server that runs."""

    url: str
    service: Service
    client: httpx.Client

    def num_inside(self) -> int:
        return sum(queue.num_inside for queue in self.service.batcher.queues.values())


@contextmanager
def running(
    service: Service,
    rules: AccessRules | None = None,
    port: int = 0,
    limits: ConnectionLimits | None = None,
    traced: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> Iterator[Running]:
    """Serve until the block ends; then drain."""
    import asyncio

    bound, started = bind("127.0.0.1", port), threading.Event()
    server = Server(traced(create_app(service, rules or AccessRules())), service, 10, started.set, limits)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    try:
        assert started.wait(20)
        # a connection of its own for each request: one that idled for 5 s may be closed just as it is used again
        alone = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=address_of(bound), timeout=20, limits=alone) as client:
            yield Running(address_of(bound), service, client)
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()
    assert not thread.is_alive()
