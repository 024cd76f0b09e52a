"""The routes of text-embeddings-inference: /embed, /rerank, /similarity, /info, /health, /metrics; and /ready."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import Field
from pydantic_core import to_json

from munjang import __version__
from munjang.server.bodies import ForeignBody, Text, Texts, TokenRows, Tokens, as_inputs, new_router
from munjang.server.embedder import Embedding
from munjang.server.render import listed, rendered
from munjang.server.reranker import sigmoid
from munjang.server.service import Service, while_connected
from munjang.vectors.similarity import SIMILARITIES


class TEIEmbed(ForeignBody):
    """POST /embed."""

    inputs: Text | Texts | Tokens | TokenRows
    truncate: bool | None = None
    normalize: bool = True
    dimensions: Annotated[int, Field(ge=1)] | None = None
    prompt_name: str | None = None
    model: str | None = None


class TEIRerank(ForeignBody):
    """POST /rerank."""

    query: Text
    texts: Texts
    truncate: bool | None = None
    raw_scores: bool = False
    return_text: bool = False
    model: str | None = None


class Similar(ForeignBody):
    """The texts that /similarity compares."""

    source_sentence: Text
    sentences: Texts


class SimilarityParameters(ForeignBody):
    """Options of /similarity."""

    truncate: bool | None = None
    prompt_name: str | None = None


class TEISimilarity(ForeignBody):
    """POST /similarity."""

    inputs: Similar
    parameters: SimilarityParameters = SimilarityParameters()
    model: str | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/embed")
    async def embed(request: Request, body: TEIEmbed) -> Response:
        inputs, model = as_inputs(body.inputs), service.embedder(body.model)
        asked = Embedding(
            prompt_name=body.prompt_name,
            normalize=body.normalize,
            dimensions=body.dimensions,
            truncate=body.truncate is not False,
        )
        vectors, num_tokens = await while_connected(request, service.embed(model, inputs, asked, "inputs"))
        request.state.facts |= {"model": model.name, "texts": len(inputs), "tokens": num_tokens}
        return Response(listed(await rendered(vectors)), media_type="application/json")

    @router.post("/rerank")
    async def rerank(request: Request, body: TEIRerank) -> Response:
        model = service.reranker(body.model)
        scoring = service.score(model, body.query, body.texts, "texts", body.truncate is not False)
        logits, num_tokens = await while_connected(request, scoring)
        request.state.facts |= {"model": model.name, "texts": len(body.texts), "tokens": num_tokens}
        scores = logits if body.raw_scores else sigmoid(logits)
        order = sorted(range(len(scores)), key=lambda row: -logits[row])
        texts = [{"text": body.texts[row]} if body.return_text else {} for row in order]
        hits = [{"index": row, "score": scores[row]} | text for row, text in zip(order, texts, strict=True)]
        return Response(to_json(hits), media_type="application/json")

    @router.post("/similarity")
    async def similarity(request: Request, body: TEISimilarity) -> Response:
        model, how = service.embedder(body.model), body.parameters
        texts = [body.inputs.source_sentence, *body.inputs.sentences]
        asked = Embedding(prompt_name=how.prompt_name, truncate=how.truncate is not False)
        service.request_limits.check(body.inputs.sentences, "sentences")
        vectors, num_tokens = await while_connected(request, service.embed(model, texts, asked, "sentences"))
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
        sizes = {name: queue.num_inside for name, queue in service.batcher.queues.items()}
        return PlainTextResponse(service.metrics.text(sizes), media_type="text/plain; version=0.0.4")

    return router


def described(service: Service) -> dict[str, Any]:
    """Describe what is served: TEI's fields for the first model, and all models by name."""
    models: dict[str, Any] = {}
    for embedder in service.embedders:
        model = embedder.model
        models[embedder.name] = {
            "kind": "embedding",
            "dimension": model.dimension,
            "dimensions": list(embedder.dimensions),
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
        "max_concurrent_requests": service.queue_limits.max_queue,
        "max_batch_tokens": service.queue_limits.max_batch_tokens,
        "max_client_batch_size": service.request_limits.max_texts,
        "auto_truncate": True,
        "version": __version__,
        "models": models,
        "has_index": service.index is not None,
    }
