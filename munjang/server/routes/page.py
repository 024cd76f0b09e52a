"""The page at /: static files of server/page, read once, with headers that let them run nothing but themselves."""

import hashlib
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from munjang.server.errors import Refused
from munjang.server.service import Service

FOLDER = Path(__file__).parents[1] / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Only files of this server, no inline script, and no text of a document ever becomes markup (trusted types)
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # cached, but validated each time: 304 where it is the same
}


def routes(service: Service) -> APIRouter:
    """Make the routes: the page at /, the files that it loads under /page/."""
    router, files = APIRouter(), read_files()

    @router.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return _answer(request, *files["index.html"])

    @router.get("/page/{name}", include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        if name not in files:
            raise Refused("not_found", "The page has no such file.")
        return _answer(request, *files[name])

    return router


def read_files() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Read content and headers of every file, by name: nothing else can be asked for."""
    files = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            files[path.name] = (content, {**HEADERS, "content-type": TYPES[path.suffix], "etag": tag})
    return files


def _answer(request: Request, content: bytes, headers: dict[str, Any]) -> Response:
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers)
