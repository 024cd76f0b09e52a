"""OpenAI's routes: POST /v1/embeddings (and /embeddings), GET /v1/models."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from munjang.server.bodies import (
    NOT_EMPTY,
    Count,
    FirstError,
    ForeignBody,
    Text,
    TokenRows,
    Tokens,
    as_inputs,
    new_router,
)
from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.render import as_base64, as_numbers, listed, written
from munjang.server.service import Service, while_connected
from munjang.types import Floats

FullText = Annotated[Text, Field(json_schema_extra={"minLength": 1})]  # routes say it in their own words


class OpenAIEmbeddings(ForeignBody):
    """POST /v1/embeddings. `input_type` is an addition: query or document, for models with a prompt for each."""

    input: FullText | Annotated[list[FullText], FirstError(), NOT_EMPTY] | Tokens | TokenRows
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Count | None = None
    input_type: Literal["query", "document", "passage"] | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()
    started = int(time.time())

    @router.post("/embeddings")
    @router.post("/v1/embeddings")
    async def embeddings(request: Request, body: OpenAIEmbeddings) -> Response:
        return await embed(service, request, body)

    @router.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [_model(name, started) for name in service.batcher.queues]}

    @router.get("/v1/models/{name:path}")
    async def model(name: str) -> dict[str, Any]:
        if name not in service.batcher.queues:
            raise Refused("not_found", "This server has no model of that name.", "model", "model_not_found")
        return _model(name, started)

    return router


async def embed(service: Service, request: Request, body: OpenAIEmbeddings) -> Response:
    """Answer as OpenAI does; texts that were cut are named under `truncated`."""
    inputs = as_inputs(body.input)
    if any(text == "" for text in inputs):
        raise Refused("invalid", "input holds an empty text; leave it out.", param="input")
    model = service.embedder(body.model)
    asked = Embedding(role=body.input_type, dimensions=body.dimensions)
    vectors, usage = await while_connected(request, service.embed(model, inputs, asked, "input"))
    usage.note(request)
    encode = as_base64 if body.encoding_format == "base64" else as_numbers

    def as_object(pair: tuple[int, Floats]) -> bytes:
        number, row = pair
        return b'{"object":"embedding","index":%d,"embedding":%b}' % (number, encode(row))

    data = await written(service.answers, listed(enumerate(vectors), as_object), vectors.size)
    used = {"prompt_tokens": usage.num_tokens, "total_tokens": usage.num_tokens}
    cut = {"truncated": list(usage.cut_rows)} if usage.cut_rows else {}
    rest = to_json({"object": "list", "model": model.name, "usage": used, **cut})
    return Response(rest[:-1] + b',"data":' + data + b"}", media_type="application/json")


def _model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "munjang"}
