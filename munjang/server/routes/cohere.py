"""Cohere's route: POST /v2/rerank."""

import uuid
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from munjang.server.bodies import ForeignBody, Text
from munjang.server.reranker import sigmoid
from munjang.server.service import Service, while_connected


class CohereRerank(ForeignBody):
    """POST /v2/rerank."""

    model: str
    query: Text
    documents: list[Text]
    top_n: Annotated[int, Field(ge=1)] | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = APIRouter()

    @router.post("/v2/rerank")
    async def rerank(request: Request, body: CohereRerank) -> Response:
        model = service.reranker(body.model)
        scoring = service.score(model, body.query, body.documents, "documents")
        logits, num_tokens = await while_connected(request, scoring)
        request.state.facts |= {"model": model.name, "texts": len(body.documents), "tokens": num_tokens}
        scores = sigmoid(logits)
        order = sorted(range(len(scores)), key=lambda row: -logits[row])[: body.top_n]
        results = [{"index": row, "relevance_score": scores[row]} for row in order]
        meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
        content = {"id": str(uuid.uuid4()), "results": results, "meta": meta}
        return Response(to_json(content), media_type="application/json")

    return router
