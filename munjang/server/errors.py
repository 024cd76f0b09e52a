"""Errors of the server, and how each API reports them: one table of kinds, one function per API's shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from munjang.errors import InputError, MunjangError


@dataclass(frozen=True)
class Kind:
    """Status by API, and the names that OpenAI and TEI give it."""

    status: int
    tei_status: int
    openai_type: str
    tei_type: str


KINDS = {
    "invalid": Kind(400, 422, "invalid_request_error", "Validation"),
    "unauthorized": Kind(401, 401, "authentication_error", "Unauthorized"),
    "host": Kind(403, 403, "permission_error", "Forbidden"),
    "forbidden": Kind(403, 403, "permission_error", "Forbidden"),
    "not_found": Kind(404, 404, "invalid_request_error", "NotFound"),
    "method": Kind(405, 405, "invalid_request_error", "Validation"),
    "slow": Kind(408, 408, "invalid_request_error", "Validation"),
    "too_large": Kind(413, 413, "invalid_request_error", "Validation"),
    "overloaded": Kind(429, 429, "rate_limit_error", "Overloaded"),
    "model": Kind(500, 424, "server_error", "Backend"),
    "internal": Kind(500, 500, "server_error", "Internal"),
    "closing": Kind(503, 503, "server_error", "Unhealthy"),
}


class Closed(MunjangError):
    """The server is shutting down."""


class Full(MunjangError):
    """Too much is waiting already; `retry_s` says when there should be room again."""

    def __init__(self, reason: str, retry_s: int) -> None:
        super().__init__(f"{reason}; try again in {retry_s} s.")
        self.retry_s = retry_s


class ClientGone(Exception):
    """The client went away before its answer."""


class Refused(MunjangError):
    """A request that gets an error for an answer. `param` and `code` are shown by OpenAI's shape alone."""

    def __init__(
        self, kind: str, message: str, param: str | None = None, code: str | None = None, retry_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.param, self.code, self.retry_s = kind, message, param, code, retry_s


def refusal(error: Exception) -> Refused:
    """Reduce an error to what a client may know: our own say what is wrong, others only that something is."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Full):
        return Refused("overloaded", str(error), code="rate_limit_exceeded", retry_s=error.retry_s)
    if isinstance(error, Closed):
        return Refused("closing", str(error), retry_s=1)
    if isinstance(error, InputError):
        return Refused("invalid", str(error))
    if isinstance(error, MunjangError):
        return Refused("model", str(error))
    return Refused("internal", "Something went wrong here; the server's log has more under this request's id.")


def _openai(refused: Refused) -> dict[str, Any]:
    kind = KINDS[refused.kind]
    fields = {"message": refused.message, "type": kind.openai_type, "param": refused.param, "code": refused.code}
    return {"error": fields}


def _cohere(refused: Refused) -> dict[str, Any]:
    return {"message": refused.message}


def _tei(refused: Refused) -> dict[str, Any]:
    return {"error": refused.message, "error_type": KINDS[refused.kind].tei_type}


SHAPES: dict[str, Callable[[Refused], dict[str, Any]]] = {"/v1/": _openai, "/v2/": _cohere, "/embeddings": _openai}


def answer(refused: Refused, path: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers for a path."""
    shape = next((shape for start, shape in SHAPES.items() if path.startswith(start)), _tei)
    kind = KINDS[refused.kind]
    headers = {} if refused.retry_s is None else {"retry-after": str(refused.retry_s)}
    if refused.kind == "unauthorized":
        headers["www-authenticate"] = "Bearer"
    return (kind.tei_status if shape is _tei else kind.status), shape(refused), headers


def documented() -> dict[int | str, dict[str, Any]]:
    """Return every status of an error, with the shapes that it may have, for /openapi.json."""
    shapes = [_schema(shape(Refused("invalid", ""))) for shape in (_openai, _cohere, _tei)]
    content = {"application/json": {"schema": {"anyOf": shapes}}}
    statuses: dict[int, list[str]] = {}
    for name, kind in KINDS.items():
        for status in {kind.status, kind.tei_status}:
            statuses.setdefault(status, []).append(name.replace("_", " "))
    return {status: {"description": ", ".join(names), "content": content} for status, names in sorted(statuses.items())}


def _schema(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"type": ["string", "null"]}
    fields = {name: _schema(each) for name, each in value.items()}
    return {"type": "object", "properties": fields, "required": list(fields)}
