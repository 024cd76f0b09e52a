"""Bases of request bodies: sizes are checked before shapes, and shapes up to the first error.

Each API's own bodies are beside its routes.
"""

import json
import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field, Strict, StrictInt
from starlette.exceptions import HTTPException

from munjang.server.errors import Refused
from munjang.server.limits import RequestLimits

BRACKETS_PER_TEXT = 4  # a document and its metadata are two
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
MAX_COUNTED_DEPTH = 3  # the metadata of a document: what is below it can't be valid


def repaired(text: str) -> str:
    """Replace lone surrogates, such as half an emoji, by U+FFFD, so that the text can be stored and answered."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


Text = Annotated[str, AfterValidator(repaired)]


class FirstError(FailFast):
    """Refuse a list at its first wrong member: 390,000 wrong ones took 15 s of the event loop."""

    __hash__ = object.__hash__  # a union of such lists needs it


def _whole(value: Any) -> Any:
    """Take 8.0 for 8, as JSON Schema does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# What clients send is JSON of the type that /openapi.json names: neither 0 nor "yes" is a boolean, nor "8" a number
Flag = Annotated[bool, Strict()]
WHOLE = BeforeValidator(_whole)  # behind the bounds, or the description leaves them out
Count = Annotated[int, Strict(), Field(ge=1), WHOLE]
Part = Annotated[float, Strict(), Field(ge=0, le=1)]

NOT_EMPTY = Field(json_schema_extra={"minItems": 1})  # for the description alone: routes say it in their own words
Texts = Annotated[list[Text], FirstError(), NOT_EMPTY]
TokenId = Annotated[StrictInt, Field(json_schema_extra={"minimum": 0})]
TokenIds = Annotated[list[TokenId], FirstError()]
Tokens = Annotated[TokenIds, NOT_EMPTY]
TokenRows = Annotated[list[Tokens], FirstError(), NOT_EMPTY]


class ForeignBody(BaseModel):
    """A body of another API: unknown fields are ignored."""

    model_config = ConfigDict(protected_namespaces=())


class OwnBody(BaseModel):
    """A body of our own routes: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def as_inputs(value: Any) -> Any:
    """Make a list of one text or one row of token ids; leave lists of them as they are."""
    is_one = isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], int))
    return [value] if is_one else value


def check_brackets(body: bytes, limits: RequestLimits) -> None:
    """Refuse a body with more lists and objects than a valid one has, before they are made: 650,000 take a while."""
    limit = BRACKETS_PER_TEXT * limits.max_texts + limits.max_fields
    if body.count(b"{") + body.count(b"[") <= limit:
        return
    bare = STRING.sub(b"", body)  # texts may hold any number
    if (found := bare.count(b"{") + bare.count(b"[")) > limit:
        raise Refused("too_large", f"The body has {found} lists and objects; at most {limit} are allowed.")


def check_sizes(value: Any, limits: RequestLimits, path: tuple[str, ...] = ()) -> None:
    """Refuse lists and objects with more members than a valid body has, before each member is looked at."""
    if not isinstance(value, dict | list):
        return
    is_ids = isinstance(value, list) and value and isinstance(value[0], int)
    limit = limits.max_fields if isinstance(value, dict) else limits.max_text_chars if is_ids else limits.max_texts
    if len(value) > limit:
        name = ".".join(path) or "body"
        what = "fields" if isinstance(value, dict) else "token ids" if is_ids else "members"
        message = f"{name}: {len(value)} {what}; at most {limit} are allowed."
        raise Refused("too_large", message, param=path[0] if path else None)
    if len(path) < MAX_COUNTED_DEPTH and not is_ids:
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(member, dict | list):
                check_sizes(member, limits, (*path, f"{key:.40}" if isinstance(key, str) else str(key)))


class BoundedRequest(Request):
    """A request whose JSON has a bounded number of members."""

    async def json(self) -> Any:
        """Parse the body and count its members."""
        body, limits = await self.body(), self.app.state.request_limits
        check_brackets(body, limits)
        value = json.loads(body)
        check_sizes(value, limits)
        return value


class BoundedRoute(APIRoute):
    """A route that reads a BoundedRequest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler behind the bounds."""
        handler = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            try:
                return await handler(BoundedRequest(request.scope, request.receive))
            except HTTPException as error:  # FastAPI hides why a body can't be parsed
                raise error.__cause__ if isinstance(error.__cause__, Refused) else error from None

        return bounded


def new_router() -> APIRouter:
    """Make a router whose bodies are bounded."""
    return APIRouter(route_class=BoundedRoute)
