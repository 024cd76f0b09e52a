"""Our routes for looking at many texts at once: GET /map of the index, POST /similarities of every text with every."""

import asyncio
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.schemas import Similarities
from munjang.server.search import index_of
from munjang.server.service import Service, while_there
from munjang.vectors.similarity import SIMILARITIES

MAX_COMPARED = 64  # texts: their scores are a square


def routes(service: Service) -> APIRouter:
    """Routes over a service."""
    router, kept = APIRouter(), Kept(service)

    @router.post("/similarities")
    async def similarities(request: Request, body: Similarities) -> Response:
        model = service.embedder(body.model)
        if len(body.texts) > MAX_COMPARED:
            raise Refused("too_large", f"{len(body.texts)} texts; {MAX_COMPARED} can be compared at once.")
        vectors, num_tokens = await while_there(request, service.embed(model, body.texts, Embedding(), "texts"))
        request.state.facts |= {"model": model.name, "texts": len(body.texts), "tokens": num_tokens}
        name = model.model.similarity_name
        scores = np.asarray(SIMILARITIES[name](vectors, vectors), np.float64).tolist()
        return Response(to_json({"similarity": name, "scores": scores}), media_type="application/json")

    @router.get("/map")
    async def map_(request: Request) -> Response:
        return Response(await while_there(request, kept.get()), media_type="application/json")

    return router


class Kept:
    """The map of the index as JSON, drawn once and again only when the index has changed."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.version: Any = None
        self.content = b""
        self._lock = asyncio.Lock()  # who comes while it is drawn waits for that one

    async def get(self) -> bytes:
        """The newest map. What was begun is finished for the next one, even if who asked has gone."""
        return await asyncio.shield(asyncio.ensure_future(self._newest()))

    async def _newest(self) -> bytes:
        index = index_of(self.service)
        async with self._lock:
            version = (self.service.num_writes, await self.service.with_index(index.count))
            if version != self.version:
                from munjang.server.landscape import sample

                found = await self.service.with_index(partial(sample, index))
                self.content = await asyncio.to_thread(_drawn, found)
                self.version = version
            return self.content


def _drawn(found: Any) -> bytes:
    from munjang.server.landscape import draw

    return to_json(asdict(draw(found)))
