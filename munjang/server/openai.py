"""OpenAI's routes: POST /v1/embeddings, GET /v1/models."""

import base64
import time
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.schemas import OpenAIEmbeddings, as_inputs
from munjang.server.service import Service, as_lists, while_there


def routes(service: Service) -> APIRouter:
    """Routes over a service."""
    router = APIRouter()
    started = int(time.time())

    @router.post("/v1/embeddings")
    async def embeddings(request: Request, body: OpenAIEmbeddings) -> Response:
        inputs = as_inputs(body.input)
        if any(text == "" for text in inputs):
            raise Refused("invalid", "input holds an empty text; leave it out.", param="input")
        model = service.embedder(body.model)
        asked = Embedding(role=body.input_type, dimensions=body.dimensions)
        vectors, num_tokens = await while_there(request, service.embed(model, inputs, asked, "input"))
        request.state.facts |= {"model": model.name, "texts": len(inputs), "tokens": num_tokens}
        shown: list[Any] = as_lists(vectors)
        if body.encoding_format == "base64":
            shown = [base64.b64encode(row.tobytes()).decode() for row in np.asarray(vectors, "<f4")]
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(shown)]
        usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
        content = {"object": "list", "data": data, "model": model.name, "usage": usage}
        return Response(to_json(content), media_type="application/json")

    @router.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [_model(name, started) for name in service.batcher.lanes]}

    @router.get("/v1/models/{name:path}")
    async def model(name: str) -> dict[str, Any]:
        if name not in service.batcher.lanes:
            raise Refused("not_found", "This server has no model of that name.", "model", "model_not_found")
        return _model(name, started)

    return router


def _model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "munjang"}
