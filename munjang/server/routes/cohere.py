"""Routes of Cohere and Jina: POST /v2/rerank and /v1/rerank."""

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from munjang.server.bodies import FirstError, ForeignBody, Text, new_router
from munjang.server.reranker import sigmoid
from munjang.server.service import Service, while_connected


class TextDocument(ForeignBody):
    """A document as an object."""

    text: Text


class CohereRerank(ForeignBody):
    """POST /v2/rerank and /v1/rerank; a document is a text or an object with one."""

    model: str | None = None
    query: Text
    documents: Annotated[list[Text | TextDocument], FirstError()]
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/v1/rerank")
    @router.post("/v2/rerank")
    async def rerank(request: Request, body: CohereRerank) -> Response:
        model = service.reranker(body.model)
        texts = [each if isinstance(each, str) else each.text for each in body.documents]
        scoring = service.score(model, body.query, texts, "documents")
        logits, num_tokens = await while_connected(request, scoring)
        request.state.facts |= {"model": model.name, "texts": len(texts), "tokens": num_tokens}
        scores = sigmoid(logits)
        order = sorted(range(len(scores)), key=lambda row: -logits[row])[: body.top_n]
        results: list[dict[str, Any]] = [{"index": row, "relevance_score": scores[row]} for row in order]
        if body.return_documents:
            results = [{**result, "document": {"text": texts[result["index"]]}} for result in results]
        meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
        content = {"id": str(uuid.uuid4()), "results": results, "meta": meta}
        return Response(to_json(content), media_type="application/json")

    return router
