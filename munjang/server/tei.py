"""The routes of text-embeddings-inference: /embed, /rerank, /similarity, /info, /health, /metrics; and /ready."""

from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic_core import to_json

from munjang import __version__
from munjang.server.embedder import Embedding
from munjang.server.render import listed, rendered
from munjang.server.reranker import sigmoid
from munjang.server.schemas import TEIEmbed, TEIRerank, TEISimilarity, as_inputs
from munjang.server.service import Service, while_there
from munjang.vectors.similarity import SIMILARITIES


def routes(service: Service) -> APIRouter:
    """Routes over a service."""
    router = APIRouter()

    @router.post("/embed")
    async def embed(request: Request, body: TEIEmbed) -> Response:
        inputs, model = as_inputs(body.inputs), service.embedder(body.model)
        asked = Embedding(
            prompt_name=body.prompt_name,
            normalize=body.normalize,
            dimensions=body.dimensions,
            truncate=body.truncate is not False,
        )
        vectors, num_tokens = await while_there(request, service.embed(model, inputs, asked, "inputs"))
        request.state.facts |= {"model": model.name, "texts": len(inputs), "tokens": num_tokens}
        return Response(listed(await rendered(vectors)), media_type="application/json")

    @router.post("/rerank")
    async def rerank(request: Request, body: TEIRerank) -> Response:
        model = service.reranker(body.model)
        work = service.score(model, body.query, body.texts, "texts", body.truncate is not False)
        logits, num_tokens = await while_there(request, work)
        request.state.facts |= {"model": model.name, "texts": len(body.texts), "tokens": num_tokens}
        scores = logits if body.raw_scores else sigmoid(logits)
        order = sorted(range(len(scores)), key=lambda place: -logits[place])
        texts = [{"text": body.texts[place]} if body.return_text else {} for place in order]
        hits = [{"index": place, "score": scores[place]} | text for place, text in zip(order, texts, strict=True)]
        return Response(to_json(hits), media_type="application/json")

    @router.post("/similarity")
    async def similarity(request: Request, body: TEISimilarity) -> Response:
        model, how = service.embedder(body.model), body.parameters
        texts = [body.inputs.source_sentence, *body.inputs.sentences]
        asked = Embedding(prompt_name=how.prompt_name, truncate=how.truncate is not False)
        service.sizes.check(body.inputs.sentences, "sentences")
        vectors, num_tokens = await while_there(request, service.embed(model, texts, asked, "sentences"))
        request.state.facts |= {"model": model.name, "texts": len(texts), "tokens": num_tokens}
        scores = SIMILARITIES[model.model.similarity_name](vectors[:1], vectors[1:])
        return Response(to_json(np.asarray(scores[0], np.float64).tolist()), media_type="application/json")

    @router.get("/info")
    async def info() -> dict[str, Any]:
        return described(service)

    @router.get("/health")
    async def health() -> dict[str, Any]:
        return {}

    @router.get("/ready")
    async def ready(response: Response) -> dict[str, Any]:
        response.status_code = 200 if service.is_ready else 503
        return {"ready": service.is_ready}

    @router.get("/metrics")
    async def metrics() -> PlainTextResponse:
        sizes = {name: lane.num_inside for name, lane in service.batcher.lanes.items()}
        return PlainTextResponse(service.metrics.text(sizes), media_type="text/plain; version=0.0.4")

    return router


def described(service: Service) -> dict[str, Any]:
    """What is served: TEI's fields for the first model, and all models by name."""
    models: dict[str, Any] = {}
    for each in service.embedders:
        model = each.model
        models[each.name] = {
            "kind": "embedding",
            "dimension": model.dimension,
            "dimensions": list(each.dimensions),
            "max_input_length": model.max_length,
            "prompts": sorted(model.prompts),
            "similarity": model.similarity_name,
            "dtype": str(model.dtype).removeprefix("torch."),
        }
    for reranker in service.rerankers:
        scorer = reranker.scorer
        dtype = str(scorer.dtype).removeprefix("torch.")
        models[reranker.name] = {"kind": "reranker", "max_input_length": scorer.max_length, "dtype": dtype}
    first = next(iter(models))
    return {
        "model_id": first,
        "model_dtype": models[first]["dtype"],
        "model_type": {models[first]["kind"]: {}},
        "max_input_length": models[first]["max_input_length"],
        "max_concurrent_requests": service.limits.max_queue,
        "max_batch_tokens": service.limits.max_batch_tokens,
        "max_client_batch_size": service.sizes.max_texts,
        "auto_truncate": True,
        "version": __version__,
        "models": models,
        "has_index": service.index is not None,
    }
