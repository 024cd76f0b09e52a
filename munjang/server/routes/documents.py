"""Our routes for the documents of the index: POST, DELETE and GET /documents."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field

from munjang.server.bodies import NOT_EMPTY, FirstError, OwnBody, Text, Texts, new_router
from munjang.server.errors import Refused
from munjang.server.service import Service, while_connected


class Document(OwnBody):
    """One document of POST /documents."""

    text: Text
    id: Annotated[Text, Field(min_length=1, max_length=512)] | None = None
    metadata: dict[Text, Text | bool | int | float | None] = Field(default_factory=dict)


class Documents(OwnBody):
    """POST /documents: those with a known id replace that document."""

    documents: Annotated[list[Document], FirstError(), NOT_EMPTY]
    index: Text | None = None


class DocumentIds(OwnBody):
    """DELETE /documents."""

    ids: Texts
    index: Text | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.post("/documents")
    async def add(request: Request, body: Documents) -> dict[str, Any]:
        view, documents = service.view(request, body.index), body.documents
        service.request_limits.check([document.text for document in documents], "documents")
        texts, ids = [each.text for each in documents], [each.id for each in documents]
        with service.telemetry.measure("write", index=view.served.name, texts=len(texts)):
            putting = service.put_documents(view, texts, ids, [each.metadata for each in documents])
            whole, usage = await while_connected(request, putting)
        usage.note(request)
        return {"ids": whole}

    @router.delete("/documents")
    async def delete(request: Request, body: DocumentIds) -> dict[str, Any]:
        view = service.view(request, body.index)
        service.request_limits.check(body.ids, "ids")
        return {"deleted": await view.run(partial(view.delete, body.ids))}

    @router.delete("/documents/{id:path}")
    async def delete_one(request: Request, id: str, index: str | None = None) -> dict[str, Any]:
        view = service.view(request, index)
        if not await view.run(partial(view.delete, [id])):
            raise Refused("not_found", "The index has no such document.")
        return {"deleted": 1}

    @router.get("/documents")
    async def described(request: Request, id: str | None = None, index: str | None = None) -> dict[str, Any]:
        """Describe the index, or one document of it: clients turn the path of an id such as `a/../b` into `b`."""
        if id is not None:
            return await document(request, id, index)
        view = service.view(request, index)

        def facts() -> dict[str, Any]:
            known, fields = view.index.info(), dict(view.index.store.schema.fields)
            return {"passages": view.count(), "fields": fields, "metric": known["metric"]}

        return await view.run(facts)

    @router.get("/documents/{id:path}")
    async def document(request: Request, id: str, index: str | None = None) -> dict[str, Any]:
        view = service.view(request, index)
        passages = await view.run(partial(view.passages, id))
        if not passages:
            raise Refused("not_found", "The index has no such document.")
        shown = [{name: getattr(passage, name) for name in ("id", "text", "start", "end")} for passage in passages]
        return {"id": id, "metadata": passages[0].metadata, "passages": shown}

    return router
