"""Our route GET /map: the passages of the index in two dimensions."""

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from munjang.server.bodies import new_router
from munjang.server.service import Service, while_connected
from munjang.server.views import View

MAX_MAPS = 32  # that are kept


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router, cache = new_router(), MapCache()

    @router.get("/map")
    async def map_(request: Request, index: str | None = None) -> Response:
        view = service.view(request, index)
        return Response(await while_connected(request, cache.get(view)), media_type="application/json")

    return router


class MapCache:
    """Maps as JSON, of each index and of what a key sees of it: drawn again only when the index has changed."""

    def __init__(self) -> None:
        self._maps: dict[Any, tuple[Any, bytes]] = {}  # the latest, MAX_MAPS of them
        self._lock = asyncio.Lock()  # a request that comes while one is drawn waits for that one

    async def get(self, view: View) -> bytes:
        """Return the newest map. One that was begun is finished for the next request, even if the client has gone."""
        return await asyncio.shield(asyncio.ensure_future(self._newest(view)))

    async def _newest(self, view: View) -> bytes:
        part = (view.served.name, *sorted(view.key.only.items()))
        async with self._lock:
            version = (view.served.num_writes, await view.run(view.count))
            known, content = self._maps.pop(part, (None, b""))
            if version != known:
                from munjang.server.landscape import draw, sample

                passages = await view.run(partial(sample, view))
                content = await asyncio.to_thread(lambda: to_json(asdict(draw(passages))))
            self._maps[part] = (version, content)
            if len(self._maps) > MAX_MAPS:
                del self._maps[next(iter(self._maps))]
            return content
