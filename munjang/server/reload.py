"""Reload: another application takes over between two requests; the old one finishes what it has begun."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from munjang.errors import MunjangError
from munjang.server.garbage import is_leaving_out, leave_out_loaded
from munjang.server.middleware import LOG, Middleware
from munjang.server.service import Service
from munjang.server.views import ServedIndex

DRAIN_LOOK_S = 0.05


@dataclass(eq=False)
class Generation:
    """An application with its service, and how many requests are in it."""

    app: Middleware
    service: Service
    num_requests: int = 0


class Reloadable:
    """The ASGI application of a server that can load its configuration anew. `load` makes the next."""

    def __init__(self, first: Generation, load: Callable[[Generation], Generation]) -> None:
        self.current, self.load = first, load
        self._reloading: asyncio.Task[None] | None = None
        self._draining: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        generation = self.current
        generation.num_requests += 1
        try:
            await generation.app(scope, receive, send)
        finally:
            generation.num_requests -= 1

    @property
    def is_ready(self) -> bool:
        """Tell whether requests are welcome."""
        return self.current.service.is_ready

    @is_ready.setter
    def is_ready(self, value: bool) -> None:
        self.current.service.is_ready = value

    def reload(self) -> None:
        """Begin to load the next generation; a second call while it loads is the same one."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start, and at the end drain the service that is there then."""
        await receive()
        self.is_ready = True
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.current.service.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _reload(self) -> None:
        try:
            generation = await asyncio.to_thread(self.load, self.current)
        except Exception as error:  # whatever is wrong with what was asked for: the old one serves on
            reason = str(error) if isinstance(error, MunjangError | OSError) else type(error).__name__
            _log(logging.ERROR, event="reload failed; serving as before", reason=reason)
            return
        old, self.current = self.current, generation
        self.is_ready = old.service.is_ready
        task = asyncio.get_running_loop().create_task(_retire(old, generation.service.indexes))
        self._draining.add(task)
        task.add_done_callback(self._retired)
        _log(logging.WARNING, event="reloaded", models=[*generation.service.batcher.queues])

    def _retired(self, task: asyncio.Task[None]) -> None:
        """Free what nothing holds any more: the old models may be parts of cycles."""
        self._draining.discard(task)
        if is_leaving_out():
            leave_out_loaded()


async def _retire(old: Generation, kept: Iterable[ServedIndex]) -> None:
    """Wait until nothing is asked of a generation any more, then close all of it that is not served still."""
    while old.num_requests:
        await asyncio.sleep(DRAIN_LOOK_S)
    still = {id(served) for served in kept}
    old.service.indexes = [served for served in old.service.indexes if id(served) not in still]
    await old.service.close()


def _log(level: int, **facts: object) -> None:
    LOG.log(level, json.dumps(facts))
