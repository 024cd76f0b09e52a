"""Our routes for the documents of the index: POST, DELETE and GET /documents."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field

from munjang.index import Index
from munjang.index.documents import document_id
from munjang.server.bodies import FirstError, OwnBody, Text, Texts, new_router
from munjang.server.errors import Refused
from munjang.server.service import Service

WRITE_DOCUMENTS = 32  # written at once, before others get their turn at the index


class Document(OwnBody):
    """One document of POST /documents."""

    text: Text
    id: Annotated[Text, Field(min_length=1, max_length=512)] | None = None
    metadata: dict[Text, Text | bool | int | float | None] = Field(default_factory=dict)


class Documents(OwnBody):
    """POST /documents: those with a known id replace that document."""

    documents: Annotated[list[Document], FirstError()]


class DocumentIds(OwnBody):
    """DELETE /documents."""

    ids: Texts


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/documents")
    async def add(request: Request, body: Documents) -> dict[str, Any]:
        index, documents = service.require_index(), body.documents
        service.request_limits.check([document.text for document in documents], "documents")
        ids: list[str] = []
        for start in range(0, len(documents), WRITE_DOCUMENTS):
            ids += await service.with_index(partial(_write, index, documents[start : start + WRITE_DOCUMENTS]))
            service.num_writes += 1
        request.state.facts |= {"texts": len(documents)}
        return {"ids": ids}

    @router.delete("/documents")
    async def delete(body: DocumentIds) -> dict[str, Any]:
        index = service.require_index()
        service.request_limits.check(body.ids, "ids")
        deleted = await service.with_index(lambda: index.delete(body.ids))
        service.num_writes += 1
        return {"deleted": deleted}

    @router.delete("/documents/{id:path}")
    async def delete_one(id: str) -> dict[str, Any]:
        index = service.require_index()
        if not await service.with_index(lambda: index.delete([id])):
            raise Refused("not_found", "The index has no such document.")
        service.num_writes += 1
        return {"deleted": 1}

    @router.get("/documents")
    async def described(id: str | None = None) -> dict[str, Any]:
        """Describe the index, or one document of it: clients turn the path of an id such as `a/../b` into `b`."""
        if id is not None:
            return await document(id)
        index = service.require_index()

        def facts() -> dict[str, Any]:
            known = index.info()
            return {"passages": index.count(), "fields": dict(index.store.schema.fields), "metric": known["metric"]}

        return await service.with_index(facts)

    @router.get("/documents/{id:path}")
    async def document(id: str) -> dict[str, Any]:
        index = service.require_index()
        passages = await service.with_index(lambda: index.get(index.store.passages([id]).get(id, [])))
        if not passages:
            raise Refused("not_found", "The index has no such document.")
        shown = [{name: getattr(passage, name) for name in ("id", "text", "start", "end")} for passage in passages]
        return {"id": id, "metadata": passages[0].metadata, "passages": shown}

    return router


def _write(index: Index, documents: Sequence[Document]) -> list[str]:
    """Upsert documents; those without an id get a hash of their content, and equal ones of these are one."""
    ids = [each.id or document_id(each.text, each.metadata) for each in documents]
    rows = [row for row, each in enumerate(documents) if each.id is not None or ids.index(ids[row]) == row]
    texts, metadata = [documents[row].text for row in rows], [documents[row].metadata for row in rows]
    index.upsert(texts, [ids[row] for row in rows], metadata, progress=False)
    return ids
