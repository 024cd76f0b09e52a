"""The routes of text-embeddings-inference: /embed, /rerank, /similarity, /info, /health, /metrics; and /ready.

POST / and /invocations take any of these bodies, and OpenAI's and Cohere's.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import Discriminator, Tag
from pydantic_core import to_json

from munjang import __version__
from munjang.server.bodies import Count, Flag, ForeignBody, Text, Texts, TokenRows, Tokens, as_inputs, new_router
from munjang.server.embedder import Embedding
from munjang.server.render import as_numbers, listed, written
from munjang.server.reranker import Scoring, sigmoid
from munjang.server.routes import cohere, openai
from munjang.server.routes.cohere import CohereRerank
from munjang.server.routes.openai import OpenAIEmbeddings
from munjang.server.service import Service, while_connected
from munjang.server.tenants import Key
from munjang.vectors.similarity import SIMILARITIES

LEFT = ("Left", "left")  # keep the end of a text that is too long
Direction = Literal["Left", "Right", "left", "right"]


class TEIEmbed(ForeignBody):
    """POST /embed."""

    inputs: Text | Texts | Tokens | TokenRows
    truncate: Flag | None = None
    truncation_direction: Direction | None = None
    normalize: Flag = True
    dimensions: Count | None = None
    prompt_name: str | None = None
    model: str | None = None


class TEIRerank(ForeignBody):
    """POST /rerank; with `documents` instead of `texts` it is Jina's and Cohere's."""

    query: Text
    texts: Texts
    truncate: Flag | None = None
    truncation_direction: Direction | None = None
    raw_scores: Flag = False
    return_text: Flag = False
    model: str | None = None


class Similar(ForeignBody):
    """The texts that /similarity compares."""

    source_sentence: Text
    sentences: Texts


class SimilarityParameters(ForeignBody):
    """Options of /similarity."""

    truncate: Flag | None = None
    truncation_direction: Direction | None = None
    prompt_name: str | None = None


class TEISimilarity(ForeignBody):
    """POST /similarity."""

    inputs: Similar
    parameters: SimilarityParameters = SimilarityParameters()
    model: str | None = None


def _kind(body: Any) -> str:
    """Tell by its fields what a body is. The brackets keep the name out of errors (app.py)."""
    fields = body if isinstance(body, dict) else {}
    if "query" in fields or "documents" in fields or "texts" in fields:
        return "(documents)" if "documents" in fields else "(texts)"
    if "input" in fields:
        return "(input)"
    return "(similarity)" if isinstance(fields.get("inputs"), dict) else "(inputs)"


AnyRerank = Annotated[
    Annotated[TEIRerank, Tag("(texts)")] | Annotated[CohereRerank, Tag("(documents)")],
    Discriminator(lambda body: "(documents)" if _kind(body) == "(documents)" else "(texts)"),
]
AnyBody = Annotated[
    Annotated[TEIEmbed, Tag("(inputs)")]
    | Annotated[TEISimilarity, Tag("(similarity)")]
    | Annotated[TEIRerank, Tag("(texts)")]
    | Annotated[CohereRerank, Tag("(documents)")]
    | Annotated[OpenAIEmbeddings, Tag("(input)")],
    Discriminator(_kind),
]


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/embed")
    async def embedding(request: Request, body: TEIEmbed) -> Response:
        return await embed(service, request, body)

    @router.post("/rerank")
    async def reranking(request: Request, body: AnyRerank) -> Response:
        return await ANSWERS[type(body)](service, request, body)

    @router.post("/similarity")
    async def similarities(request: Request, body: TEISimilarity) -> Response:
        return await similarity(service, request, body)

    @router.post("/")
    @router.post("/invocations")
    async def any_of_them(request: Request, body: AnyBody) -> Response:
        """Answer what hosts of one model (SageMaker, Vertex, inference endpoints) send to one address."""
        return await ANSWERS[type(body)](service, request, body)

    @router.get("/info")
    async def info(request: Request) -> dict[str, Any]:
        return described(service, request.state.key)

    @router.get("/ping")
    @router.get("/health")
    async def health() -> dict[str, Any]:
        return {}

    @router.get("/ready")
    async def ready(response: Response) -> dict[str, Any]:
        response.status_code = 200 if service.is_ready else 503
        return {"ready": service.is_ready}

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(service.metrics.text(service.queue_sizes()), media_type="text/plain; version=0.0.4")

    return router


async def embed(service: Service, request: Request, body: TEIEmbed) -> Response:
    """Answer POST /embed."""
    inputs, model = as_inputs(body.inputs), service.embedder(body.model)
    asked = Embedding(
        prompt_name=body.prompt_name,
        normalize=body.normalize,
        dimensions=body.dimensions,
        truncate=body.truncate is not False,
        keeps_end=body.truncation_direction in LEFT,
    )
    vectors, usage = await while_connected(request, service.embed(model, inputs, asked, "inputs"))
    usage.note(request)
    content = await written(service.answers, listed(vectors, as_numbers), vectors.size)
    return Response(content, media_type="application/json")


async def rerank(service: Service, request: Request, body: TEIRerank) -> Response:
    """Answer POST /rerank with `texts`."""
    model = service.reranker(body.model)
    asked = Scoring(body.truncate is not False, body.truncation_direction in LEFT)
    logits, usage = await while_connected(request, service.score(model, body.query, body.texts, "texts", asked))
    usage.note(request)
    scores = logits if body.raw_scores else sigmoid(logits)
    order = sorted(range(len(scores)), key=lambda row: -logits[row])
    texts = [{"text": body.texts[row]} if body.return_text else {} for row in order]
    hits = [{"index": row, "score": scores[row]} | text for row, text in zip(order, texts, strict=True)]
    return Response(to_json(hits), media_type="application/json")


async def similarity(service: Service, request: Request, body: TEISimilarity) -> Response:
    """Answer POST /similarity."""
    model, how = service.embedder(body.model), body.parameters
    texts = [body.inputs.source_sentence, *body.inputs.sentences]
    keeps_end = how.truncation_direction in LEFT
    asked = Embedding(prompt_name=how.prompt_name, truncate=how.truncate is not False, keeps_end=keeps_end)
    service.request_limits.check(body.inputs.sentences, "sentences")
    vectors, usage = await while_connected(request, service.embed(model, texts, asked, "sentences"))
    usage.note(request)
    scores = SIMILARITIES[model.model.similarity_name](vectors[:1], vectors[1:])
    return Response(to_json(np.asarray(scores[0], np.float64).tolist()), media_type="application/json")


ANSWERS: dict[type[ForeignBody], Callable[[Service, Request, Any], Awaitable[Response]]] = {
    TEIEmbed: embed,
    TEIRerank: rerank,
    TEISimilarity: similarity,
    CohereRerank: cohere.rerank,
    OpenAIEmbeddings: openai.embed,
}


def described(service: Service, key: Key) -> dict[str, Any]:
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
    for beside in service.beside:
        dtype = str(beside.model.dtype).removeprefix("torch.")
        facts = {"dimension": beside.model.dimension, "max_input_length": beside.model.max_length, "dtype": dtype}
        models[beside.name] = {"kind": beside.kind, **facts}
    served = service.visible_indexes(key)
    first, indexes = next(iter(models)), [each.name for each in served]
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
        "has_index": bool(indexes),
        "indexes": indexes,
        "ways": {each.name: each.index.ways for each in served},
    }
