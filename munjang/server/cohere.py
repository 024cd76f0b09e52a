"""Cohere's route: POST /v2/rerank."""

import uuid

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from munjang.server.reranker import sigmoid
from munjang.server.schemas import CohereRerank
from munjang.server.service import Service, while_there


def routes(service: Service) -> APIRouter:
    """Routes over a service."""
    router = APIRouter()

    @router.post("/v2/rerank")
    async def rerank(request: Request, body: CohereRerank) -> Response:
        model = service.reranker(body.model)
        work = service.score(model, body.query, body.documents, "documents")
        logits, num_tokens = await while_there(request, work)
        request.state.facts |= {"model": model.name, "texts": len(body.documents), "tokens": num_tokens}
        scores = sigmoid(logits)
        order = sorted(range(len(scores)), key=lambda place: -logits[place])[: body.top_n]
        results = [{"index": place, "relevance_score": scores[place]} for place in order]
        meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
        content = {"id": str(uuid.uuid4()), "results": results, "meta": meta}
        return Response(to_json(content), media_type="application/json")

    return router
