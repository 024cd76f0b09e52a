"""Our routes for keys: GET /usage of one's own, and GET, POST and DELETE /keys for who may manage them."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field, Strict

from munjang.server.bodies import WHOLE, OwnBody, Text, new_router
from munjang.server.errors import Refused
from munjang.server.service import Service
from munjang.server.tenants import NAME, SCOPES, Key, Keyring, add_key, revoke_key

Limit = Annotated[int, Strict(), Field(ge=1, le=2**53), WHOLE] | None

Scope = Annotated[Text, Field(json_schema_extra={"enum": list(SCOPES)})]


class NewKey(OwnBody):
    """POST /keys. `only`: metadata that all of its documents have."""

    name: Annotated[Text, Field(json_schema_extra={"pattern": "^" + NAME.pattern.replace(r"\Z", "$")})]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] = Field(default_factory=lambda: ["read"])
    indexes: Annotated[list[Text], Field(max_length=100)] = Field(default_factory=list)
    only: dict[Text, Text | bool | int | float] = Field(default_factory=dict)
    requests_per_minute: Limit = None
    tokens_per_minute: Limit = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    @router.get("/usage")
    async def usage(request: Request) -> dict[str, Any]:
        """Tell what the caller's key may do, and what it has used since the server started."""
        return _shown(request.app.state.keyring, request.state.key)

    @router.get("/keys")
    async def keys(request: Request) -> dict[str, Any]:
        keyring: Keyring = request.app.state.keyring
        return {"keys": [_shown(keyring, key) for key in keyring.listed()], "can_change": keyring.path is not None}

    @router.post("/keys")
    async def add(request: Request, body: NewKey) -> dict[str, Any]:
        """Make a key; the answer is the only place where it is ever shown."""
        key = Key(**{**body.model_dump(), "scopes": tuple(body.scopes), "indexes": tuple(body.indexes)})
        return {"name": key.name, "key": await _changed(partial(add_key, _path(request), key))}

    @router.delete("/keys/{name}")
    async def revoke(request: Request, name: str) -> dict[str, Any]:
        keyring: Keyring = request.app.state.keyring
        path = _path(request)
        if name not in [key.name for key in keyring.listed()]:
            raise Refused("not_found", "There is no key of that name.")
        await _changed(partial(revoke_key, path, name))
        keyring.listed()  # from now on
        return {"revoked": name}

    return router


def _shown(keyring: Keyring, key: Key) -> dict[str, Any]:
    use = keyring.use(key)
    return {**key.described(), "requests": use.num_requests, "tokens": use.num_tokens}


def _path(request: Request) -> Path:
    path: Path | None = request.app.state.keyring.path
    if path is None:
        raise Refused("not_found", "This server has no file of keys; start it with --keys FILE.")
    return path


async def _changed(change: Any) -> Any:
    try:
        return await asyncio.to_thread(change)
    except OSError as error:
        raise Refused("model", f"The file of keys can't be changed here: {error.strerror}.") from None
