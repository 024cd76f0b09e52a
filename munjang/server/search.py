"""Our own routes: POST /search, and POST, DELETE and GET of documents."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.schemas import DocumentIds, Documents, Search
from munjang.server.service import Service, while_there
from munjang.types import Hit

DOCUMENTS_AT_ONCE = 32  # written between two looks at who else waits for the index


def routes(service: Service) -> APIRouter:
    """Routes over a service."""
    router = APIRouter()

    @router.post("/search")
    async def search(request: Request, body: Search) -> Response:
        hits = await while_there(request, find(service, body))
        request.state.facts |= {"hits": len(hits)}
        return Response(to_json({"hits": [hit.as_dict() for hit in hits]}), media_type="application/json")

    @router.post("/documents")
    async def add(request: Request, body: Documents) -> dict[str, Any]:
        index, given = index_of(service), body.documents
        service.sizes.check([document.text for document in given], "documents")
        ids: list[str] = []
        for start in range(0, len(given), DOCUMENTS_AT_ONCE):
            ids += await service.with_index(partial(_write, index, given[start : start + DOCUMENTS_AT_ONCE]))
            service.num_writes += 1
        request.state.facts |= {"texts": len(given)}
        return {"ids": ids}

    @router.delete("/documents")
    async def delete(body: DocumentIds) -> dict[str, Any]:
        index = index_of(service)
        service.sizes.check(body.ids, "ids")
        deleted = await service.with_index(lambda: index.delete(body.ids))
        service.num_writes += 1
        return {"deleted": deleted}

    @router.delete("/documents/{id:path}")
    async def delete_one(id: str) -> dict[str, Any]:
        index = index_of(service)
        if not await service.with_index(lambda: index.delete([id])):
            raise Refused("not_found", "The index has no such document.")
        service.num_writes += 1
        return {"deleted": 1}

    @router.get("/documents")
    async def documents(id: str | None = None) -> dict[str, Any]:
        """The index, or one document of it: clients make the path of an id such as `a/../b` that of `b`."""
        if id is not None:
            return await document(id)
        index = index_of(service)

        def facts() -> dict[str, Any]:
            known = index.info()
            return {"passages": index.count(), "fields": dict(index.store.schema.fields), "metric": known["metric"]}

        return await service.with_index(facts)

    @router.get("/documents/{id:path}")
    async def document(id: str) -> dict[str, Any]:
        index = index_of(service)
        passages = await service.with_index(lambda: index.get(index.store.passages([id]).get(id, [])))
        if not passages:
            raise Refused("not_found", "The index has no such document.")
        shown = [{"id": each.id, "text": each.text, "start": each.start, "end": each.end} for each in passages]
        return {"id": id, "metadata": passages[0].metadata, "passages": shown}

    return router


async def find(service: Service, body: Search) -> list[Hit]:
    """Search as `Index.search` does, but let the batcher compute the query's vector and the re-ranker's pairs."""
    index = index_of(service)
    if body.rerank is False and body.rerank_weight is not None:
        raise Refused("invalid", "rerank_weight is the weight of a re-ranker; name it with rerank.")
    embedder = next(each for each in service.embedders if each.model is index.model)
    vectors, _ = await service.embed(embedder, [body.query], Embedding(role="query"), "query")
    asked = (body.query, body.k, body.candidates, body.where, body.group, body.hybrid, vectors)
    found = await service.with_index(lambda: index.retrieve(*asked))
    [hits], reranking, logits = found.hits, None, None
    if body.rerank is not False and hits:
        reranker = service.reranker(None if body.rerank is True else body.rerank)
        reranking = replace(reranker.reranking, weight=body.rerank_weight)
        logits, _ = await service.score(reranker, body.query, [hit.text for hit in hits], "candidates")
    finished: list[Hit] = index.finish(found, reranking, None if logits is None else [logits])
    return finished


def _write(index: Any, documents: Sequence[Any]) -> list[str]:
    """Documents with an id of their own and those without are two calls: an index takes ids for all or for none."""
    named = [document for document in documents if document.id is not None]
    others = [document for document in documents if document.id is None]
    found: dict[int, str] = {}
    for some in (named, others):
        if some:
            ids = [document.id for document in some] if some is named else None
            texts, metadata = [each.text for each in some], [each.metadata for each in some]
            written = index.upsert(texts, ids, metadata, progress=False)
            found |= dict(zip(map(id, some), written, strict=False))
    return [found[id(document)] for document in documents if id(document) in found]


def index_of(service: Service) -> Any:
    """The index; a server may have none."""
    if service.index is None:
        raise Refused("not_found", "This server has no index; start it with --index.")
    return service.index
