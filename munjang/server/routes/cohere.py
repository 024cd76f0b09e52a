"""Routes of Cohere and Jina: POST /v2/rerank and /v1/rerank, POST /v2/embed."""

import uuid
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field
from pydantic_core import to_json

from munjang.server.bodies import NOT_EMPTY, Count, FirstError, Flag, ForeignBody, Text, Texts, new_router
from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.render import as_base64, as_numbers, listed, written
from munjang.server.reranker import Scoring, sigmoid
from munjang.server.service import Service, Usage, while_connected
from munjang.vectors.precision import quantize

# Cohere's purposes to ours: prompts for what is neither a query nor a document are not in most models
ROLES = {"search_query": "query", "search_document": "document", "classification": None, "clustering": None}
TEXTS: dict[str, Any] = {"anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}]}
NOTHING: dict[str, Any] = {"anyOf": [{"type": "array", "maxItems": 0}, {"type": "null"}]}
PACKED = {"binary": "binary", "ubinary": "ubinary"}  # one bit a dimension, eight of them in a number


class TextDocument(ForeignBody):
    """A document as an object."""

    text: Text


class CohereRerank(ForeignBody):
    """POST /v2/rerank and /v1/rerank; a document is a text or an object with one."""

    model: str | None = None
    query: Text
    documents: Annotated[list[Text | TextDocument], FirstError(), NOT_EMPTY]
    top_n: Count | None = None
    return_documents: Flag | None = None
    max_tokens_per_doc: Count | None = None


class CohereEmbed(ForeignBody):
    """POST /v2/embed."""

    model: str | None = None
    # described as they are allowed; the route says so in its own words
    model_config = ConfigDict(json_schema_extra={"required": ["texts"]})
    texts: Annotated[Texts | None, Field(json_schema_extra=TEXTS)] = None
    images: Annotated[list[Any] | None, Field(json_schema_extra=NOTHING)] = None
    inputs: Annotated[list[Any] | None, Field(json_schema_extra=NOTHING)] = None
    input_type: Literal["search_query", "search_document", "classification", "clustering"] | None = None
    embedding_types: list[Literal["float", "base64", "binary", "ubinary"]] | None = None
    output_dimension: Count | None = None
    max_tokens: Count | None = None
    truncate: Literal["NONE", "START", "END"] = "END"


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/v1/rerank")
    @router.post("/v2/rerank")
    async def reranking(request: Request, body: CohereRerank) -> Response:
        return await rerank(service, request, body)

    @router.post("/v2/embed")
    async def embed(request: Request, body: CohereEmbed) -> Response:
        if body.texts is None or body.images or body.inputs:
            raise Refused("invalid", "This server embeds texts alone; send them as texts.")
        kinds = list(dict.fromkeys(body.embedding_types or ["float"]))
        model = service.embedder(body.model)
        asked = Embedding(
            role=None if body.input_type is None else ROLES[body.input_type],
            dimensions=body.output_dimension,
            truncate=body.truncate != "NONE",
            keeps_end=body.truncate == "START",
            max_tokens=body.max_tokens,
        )
        vectors, usage = await while_connected(request, service.embed(model, body.texts, asked, "texts"))
        usage.note(request)
        fields = []
        for kind in kinds:
            stored = quantize(vectors, PACKED[kind], None) if kind in PACKED else vectors
            rows = listed(stored, as_base64 if kind == "base64" else as_numbers)
            fields.append(to_json(kind) + b":" + await written(service.answers, rows, stored.size))
        meta = _meta(usage, {"input_tokens": usage.num_tokens})
        rest = to_json({"id": str(uuid.uuid4()), "texts": body.texts, "meta": meta})
        content = rest[:-1] + b',"response_type":"embeddings_by_type","embeddings":{' + b",".join(fields) + b"}}"
        return Response(content, media_type="application/json")

    return router


async def rerank(service: Service, request: Request, body: CohereRerank) -> Response:
    """Answer as Cohere does; texts that were cut are named in a warning."""
    model = service.reranker(body.model)
    texts = [each if isinstance(each, str) else each.text for each in body.documents]
    asked = Scoring(max_tokens=body.max_tokens_per_doc)
    scoring = service.score(model, body.query, texts, "documents", asked)
    logits, usage = await while_connected(request, scoring)
    usage.note(request)
    scores = sigmoid(logits)
    order = sorted(range(len(scores)), key=lambda row: -logits[row])[: body.top_n]
    results: list[dict[str, Any]] = [{"index": row, "relevance_score": scores[row]} for row in order]
    if body.return_documents:
        results = [{**result, "document": {"text": texts[result["index"]]}} for result in results]
    content = {"id": str(uuid.uuid4()), "results": results, "meta": _meta(usage, {"search_units": 1})}
    return Response(to_json(content), media_type="application/json")


def _meta(usage: Usage, billed: dict[str, int]) -> dict[str, Any]:
    meta: dict[str, Any] = {"api_version": {"version": "2"}, "billed_units": billed}
    if usage.cut_rows:
        meta["warnings"] = [f"Texts that were too long and were cut: {', '.join(map(str, usage.cut_rows))}."]
    return meta
