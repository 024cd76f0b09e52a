"""Serve the search page: static files, read once, with headers that let them run nothing but themselves."""

import hashlib
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from munjang import pages
from munjang.server.errors import Refused
from munjang.server.service import Service

FOLDER = Path(__file__).parents[1] / "page"
SHARED = ("base.css", "theme.js", "icon.svg")  # with every page that Munjang writes
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
    """Serve the page at / and the files it loads under /page/."""
    router, files = APIRouter(), read_files()

    @router.get("/", response_class=HTMLResponse)
    async def page(request: Request) -> Response:
        return _answer(request, *files["index.html"])

    @router.get("/page/{name}", include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        if name not in files:
            raise Refused("not_found", "The page has no such file.")
        return _answer(request, *files[name])

    return router


def read_files() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Read content and headers of every file, by name. Only files in this table can be requested."""
    paths = [*FOLDER.iterdir(), *(Path(pages.__file__).parent / name for name in SHARED)]
    table = {}
    for path in sorted(paths):
        if path.suffix in TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            table[path.name] = (content, {**HEADERS, "content-type": TYPES[path.suffix], "etag": tag})
    return table


def _answer(request: Request, content: bytes, headers: dict[str, Any]) -> Response:
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers)
