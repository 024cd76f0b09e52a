"""The application: all routes over a service, behind the gate."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from munjang.errors import MunjangError
from munjang.server import cohere, openai, overview, search, static, tei
from munjang.server.errors import Refused, answer, refusal
from munjang.server.gate import CLIENT_GONE, ClientGone, Gate
from munjang.server.rules import Rules
from munjang.server.service import Service

APIS = (openai, tei, cohere, search, overview, static)


def create_app(service: Service, rules: Rules) -> Gate:
    """An ASGI application; its lifespan drains the service at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.is_ready = True
        yield
        await service.close()

    # no pages of documentation: they load scripts from elsewhere
    app = FastAPI(title="Munjang", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(MunjangError)(_ours)
    app.exception_handler(ClientGone)(_gone)
    app.exception_handler(Exception)(_any)
    for api in APIS:
        app.include_router(api.routes(service))
    return Gate(app, rules, service.metrics)


async def _ours(request: Request, error: Exception) -> Response:
    request.state.facts["error"] = type(error.__cause__ or error).__name__
    return _answered(request, refusal(error))


async def _any(request: Request, error: Exception) -> Response:
    """What nobody foresaw: the gate writes where it happened into the log."""
    return _answered(request, refusal(error))


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


async def _invalid(request: Request, error: Exception) -> Response:
    """What doesn't fit a schema: where and why, without what was given, which may be a text."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    name = place[0] if place else None
    if first["type"] == "json_invalid":
        return _answered(request, Refused("invalid", f"The body is no JSON: {first['ctx']['error']}."))
    return _answered(request, Refused("invalid", f"{'.'.join(place) or 'body'}: {first['msg']}.", param=name))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not_found", 405: "method"}.get(error.status_code, "invalid")
    return _answered(request, Refused(kind, str(error.detail)))


def _answered(request: Request, refused: Refused) -> Response:
    status, content, headers = answer(refused, request.url.path)
    return Response(to_json(content), status, headers, "application/json")
