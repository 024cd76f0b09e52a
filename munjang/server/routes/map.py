"""Our route GET /map: the passages of the index in two dimensions."""

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from munjang.server.bodies import new_router
from munjang.server.service import Service, while_connected


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router, cache = new_router(), MapCache(service)

    @router.get("/map")
    async def map_(request: Request) -> Response:
        return Response(await while_connected(request, cache.get()), media_type="application/json")

    return router


class MapCache:
    """The map of the index as JSON, drawn once and again only when the index has changed."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.version: Any = None
        self.content = b""
        self._lock = asyncio.Lock()  # a request that comes while it is drawn waits for that one

    async def get(self) -> bytes:
        """Return the newest map. One that was begun is finished for the next request, even if the client has gone."""
        return await asyncio.shield(asyncio.ensure_future(self._newest()))

    async def _newest(self) -> bytes:
        index = self.service.require_index()
        async with self._lock:
            version = (self.service.num_writes, await self.service.with_index(index.count))
            if version != self.version:
                from munjang.server.landscape import draw, sample

                passages = await self.service.with_index(partial(sample, index))
                self.content = await asyncio.to_thread(lambda: to_json(asdict(draw(passages))))
                self.version = version
            return self.content
