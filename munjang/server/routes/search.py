"""Our route POST /search."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, Strict
from pydantic_core import to_json

from munjang.index.candidates import RetrieveOptions
from munjang.index.ways import WAYS
from munjang.server.bodies import WHOLE, Flag, OwnBody, Part, Text, new_router
from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.render import listed, written
from munjang.server.service import Service, while_connected
from munjang.types import Hit

SOME_WAYS: dict[str, Any] = {"minItems": 1, "items": {"enum": [*WAYS]}}  # for the description: routes say it too
NAMED: dict[str, Any] = {"propertyNames": {"enum": [*WAYS]}}
CHARS_PER_WORD = 4  # a text is written as fast as so many fewer numbers


class Search(OwnBody):
    """POST /search. `rerank`: the name of a re-ranker, or true for the first one.

    `rerank_weight`: its weight in the final order, 0 to 1, the retrieval has the rest; left out, what the re-ranker's
    folder states, or 1. `by`: some of words, dense, sparse, late; left out, all that the index has. `weights`: of each
    way. `min_score`: the lowest relevance, in an index that is calibrated. `around`: passages on either side of a hit's
    own that are joined to its text, or "document". `index`: its name, where there are several.
    """

    query: Text
    k: Annotated[int, Strict(), Field(ge=1, le=1000), WHOLE] = 10
    candidates: Annotated[int, Strict(), Field(ge=1, le=1000), WHOLE] = 100
    where: Annotated[Text, Field(max_length=10_000)] | None = None
    rerank: Flag | str = False
    rerank_weight: Part | None = None
    group: Literal["document", "passage"] = "document"
    by: Annotated[list[Text], Field(json_schema_extra=SOME_WAYS)] | None = None
    weights: Annotated[dict[Text, Annotated[float, Strict(), Field(ge=0)]], Field(json_schema_extra=NAMED)] | None = (
        None
    )
    fusion: Literal["scores", "ranks"] = "scores"
    diversity: Part = 0.0
    min_score: Part | None = None
    index: Text | None = None
    around: Annotated[int, Strict(), Field(ge=0, le=1000), WHOLE] | Literal["document"] = 0


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/search")
    async def search(request: Request, body: Search) -> Response:
        hits = await while_connected(request, find(service, request, body))
        request.state.facts |= {"hits": len(hits)}
        shown = listed(hits, lambda hit: to_json(hit.as_dict()))
        num_words = sum(len(hit.text) for hit in hits) // CHARS_PER_WORD
        content = b'{"hits":' + await written(service.answers, shown, num_words) + b"}"
        return Response(content, media_type="application/json")

    return router


async def find(service: Service, request: Request, body: Search) -> list[Hit]:
    """Search as `Index.search` does, but let the batcher compute the query's vector and the re-ranker's pairs."""
    view = service.view(request, body.index)
    if body.rerank is False and body.rerank_weight is not None:
        raise Refused("invalid", "rerank_weight is the weight of a re-ranker; name it with rerank.")
    service.request_limits.check_query(body.query)
    embedder = service.model_of(view.served)
    vectors, usage = await service.embed(embedder, [body.query], Embedding(role="query"), "query")
    usage.note(request)
    asked = (body.query, body.k, body.candidates, body.where, vectors)
    names = ("group", "by", "weights", "fusion", "diversity", "min_score", "around")
    options: RetrieveOptions = {name: getattr(body, name) for name in names}  # type: ignore[assignment]
    retrieve = partial(view.retrieve, *asked, **options)
    with service.telemetry.measure("search", index=view.served.name):
        if body.rerank is False:  # one turn at the index, not two
            return await view.run(lambda: view.index.finish(retrieve()))
        found = await view.run(retrieve)
    [hits] = found.hits
    if not hits:
        return []
    reranker = service.reranker(None if body.rerank is True else body.rerank)
    reranking = replace(reranker.reranking, weight=body.rerank_weight)
    with service.telemetry.measure("rerank", model=reranker.name, texts=len(hits)):
        logits, usage = await service.score(reranker, body.query, [hit.text for hit in hits], "candidates")
    usage.note(request)
    return await view.run(partial(view.index.finish, found, reranking, [logits]))
