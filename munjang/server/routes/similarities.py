"""Our route POST /similarities: every text with every other."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from munjang.server.bodies import OwnBody, Texts, new_router
from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.service import Service, while_connected
from munjang.vectors.similarity import SIMILARITIES

MAX_COMPARED = 64  # texts: their scores are a square


class Similarities(OwnBody):
    """POST /similarities."""

    texts: Annotated[Texts, Field(json_schema_extra={"maxItems": MAX_COMPARED})]  # the route says it too
    model: str | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/similarities")
    async def similarities(request: Request, body: Similarities) -> Response:
        model = service.embedder(body.model)
        if len(body.texts) > MAX_COMPARED:
            raise Refused("too_large", f"{len(body.texts)} texts; at most {MAX_COMPARED} can be compared.")
        vectors, usage = await while_connected(request, service.embed(model, body.texts, Embedding(), "texts"))
        usage.note(request)
        name = model.model.similarity_name
        scores = np.asarray(SIMILARITIES[name](vectors, vectors), np.float64).tolist()
        return Response(to_json({"similarity": name, "scores": scores}), media_type="application/json")

    return router
