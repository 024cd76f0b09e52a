"""The application: all routes over a service, behind the middleware."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.routing import Match

from munjang.errors import MunjangError
from munjang.server.description import describe
from munjang.server.errors import ClientGone, Refused, answer, documented, refusal
from munjang.server.limits import AccessRules
from munjang.server.middleware import CLIENT_GONE, Middleware
from munjang.server.routes import all_routes
from munjang.server.service import Service


def create_app(service: Service, rules: AccessRules) -> Middleware:
    """Make the ASGI application; its lifespan drains the service at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.is_ready = True
        yield
        await service.close()

    # no pages of documentation: they load scripts from elsewhere
    app = FastAPI(title="Munjang", lifespan=lifespan, docs_url=None, redoc_url=None, responses=documented())
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(MunjangError)(_munjang_error)
    app.exception_handler(ClientGone)(_client_gone)
    app.exception_handler(Exception)(_unforeseen)
    app.state.request_limits, app.state.keyring = service.request_limits, rules.keyring
    routers = all_routes(service)
    app.state.routes = [route for router in routers for route in router.routes]
    for router in routers:
        app.include_router(router)
    describe(app, service)
    return Middleware(app, rules, service.metrics)


async def _munjang_error(request: Request, error: Exception) -> Response:
    request.state.facts["error"] = type(error.__cause__ or error).__name__
    return _answered(request, refusal(error))


async def _unforeseen(request: Request, error: Exception) -> Response:
    """Answer an unforeseen error; the middleware logs where it happened."""
    return _answered(request, refusal(error))


async def _client_gone(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_GONE)


async def _invalid(request: Request, error: Exception) -> Response:
    """Say where and why a body doesn't fit, without its content, which may be a text."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    # the name of a member of a union, such as function-after[whole(), str], is pydantic's, not the client's
    path = [str(step) for step in first["loc"] if step != "body" and not re.search(r"[\[(]", str(step))]
    name = path[0] if path else None
    if first["type"] == "json_invalid":
        return _answered(request, Refused("invalid", f"The request body is not valid JSON: {first['ctx']['error']}."))
    return _answered(request, Refused("invalid", f"{'.'.join(path) or 'body'}: {first['msg']}.", param=name))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not_found", 405: "method"}.get(error.status_code, "invalid")
    more = {"allow": ", ".join(_methods(request))} if kind == "method" else {}
    return _answered(request, Refused(kind, str(error.detail)), more)


def _methods(request: Request) -> list[str]:
    """Return the methods of all routes at a path; the router knows those of the first alone."""
    scope = dict(request.scope)
    matching = [route for route in request.app.state.routes if route.matches(scope)[0] is not Match.NONE]
    return sorted({method for route in matching for method in getattr(route, "methods", None) or ()})


def _answered(request: Request, refused: Refused, more: Mapping[str, str] = MappingProxyType({})) -> Response:
    status, content, headers = answer(refused, request.url.path)
    return Response(to_json(content), status, {**headers, **more}, "application/json")
