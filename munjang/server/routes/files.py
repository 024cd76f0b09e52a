"""Our route POST /files: a file as it is into the index, read in a child process with limits of time and memory."""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from munjang.data.documents import Document
from munjang.data.office.extractor import Extractor
from munjang.data.office.part import Unreadable
from munjang.errors import InputError, MissingExtra
from munjang.index.files import SUFFIXES, digest_of, read_file
from munjang.server.bodies import repaired
from munjang.server.errors import Refused
from munjang.server.service import Service
from munjang.server.turns import Turns

CONTENT_TYPE = "application/octet-stream"
MAX_NAME_CHARS = 200
# for the description alone: of any case, behind a name
NAMES = rf"[^/\\]\.({'|'.join(''.join(f'[{c}{c.upper()}]' for c in suffix[1:]) for suffix in SUFFIXES)})$"


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router, extractor = APIRouter(), Extractor()
    reading = Turns("files")  # one file after the other, of each client in turn
    service.on_close += [reading.close, extractor.close]

    @router.post("/files", openapi_extra={"requestBody": {"content": {CONTENT_TYPE: {}}, "required": True}})
    async def add(
        request: Request,
        name: Annotated[str, Query(min_length=1, max_length=MAX_NAME_CHARS, json_schema_extra={"pattern": NAMES})],
        index: str | None = None,
    ) -> dict[str, Any]:
        """Add a file: PDF, Word, PowerPoint, Excel, HWPX, HTML, EPUB, e-mail or text. Its name is its id."""
        view = service.view(request, index)
        # a web page elsewhere can't send this type without asking first
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT_TYPE:
            raise Refused("invalid", f"Send the file as the body, with the header 'Content-Type: {CONTENT_TYPE}'.")
        plain = repaired(name).replace("\\", "/").rpartition("/")[2]
        suffix = Path(plain).suffix.lower()
        if suffix not in SUFFIXES:
            raise Refused("invalid", f"Can't read a file named {plain!r}; choose from {', '.join(SUFFIXES)}.", "name")
        id = f"{view.key.name}/{plain}" if view.key.only else plain
        found = await reading.run(partial(_read, extractor, await request.body(), suffix, id))
        with service.telemetry.measure("write", index=view.served.name, texts=1):
            given = ([found.text], [id], [found.metadata], [found.sections])
            _, usage = await service.put_documents(view, *given)
        usage.note(request)
        return {"id": id, "characters": len(found.text), "parts": len(found.sections)}

    return router


def _read(extractor: Extractor, content: bytes, suffix: str, id: str) -> Document:
    """Read a file by way of the disk, for the child process; nothing of it stays there."""
    handle, path = tempfile.mkstemp(suffix, "munjang-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return read_file(extractor, path, id, {"source": id, "digest": digest_of(path)})
    except MissingExtra:
        raise
    except (Unreadable, InputError) as error:
        reason = str(error).replace(path, id)
        raise Refused("invalid", f"{id} can't be read: {reason}") from None
    finally:
        os.unlink(path)
