"""munjang mcp --index PLACE: let a language model search an index, by the Model Context Protocol on standard input.

munjang mcp --index notes-index
munjang mcp --index notes-index --rerank path/to/cross-encoder --write
"""

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from munjang.cli.options import option
from munjang.errors import InputError, MissingExtra, MunjangError
from munjang.stores import LASTING_LOCATIONS

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from munjang.cross_encoder import CrossEncoder
    from munjang.index import Index

SUMMARY_KO = "언어 모델이 색인에서 찾게 하기 (MCP)"
MAX_HITS, MAX_DOCUMENTS = 100, 256
MAX_TEXT_CHARS = 100_000  # of a query, a filter or a document that a language model writes
INSTRUCTIONS = (
    "Search a collection of documents by meaning and by words, in Korean or English. Call `search` with a question or "
    "a few words, then `get` with a document's id to read all of it."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang mcp`."""

    index: str = option(f"search this index: {LASTING_LOCATIONS}")
    name: str = option("name of the index at that place", default="default")
    rerank: str | None = option("re-rank the candidates with this cross-encoder", default=None)
    where: str | None = option('search only what this filter keeps, such as "public = true"', default=None)
    write: bool = option("let documents be added and deleted too", default=False)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)


def run(options: Options) -> int:
    """Serve one client on standard input and output until it closes them."""
    try:
        import mcp.server.mcpserver  # noqa: F401  # imported here to report it plainly if it is missing
    except ImportError:
        raise MissingExtra("mcp", "mcp", "munjang mcp") from None
    from munjang.cross_encoder import CrossEncoder
    from munjang.index import Index

    if options.write and options.where is not None:
        raise InputError("--where keeps documents from being seen, and --write could replace them; give one of them")
    scorer = CrossEncoder.load(options.rerank, device=options.device) if options.rerank else None
    logging.getLogger("mcp").setLevel(logging.ERROR)
    with Index.open(options.index, None, options.name, create=False, device=options.device) as index:
        server_of(index, scorer, options.where, options.write).run("stdio")
    return 0


def server_of(index: "Index", scorer: "CrossEncoder | None", own: str | None, can_write: bool) -> "MCPServer[Any]":
    """Make an MCP server with the tools of an index. `own`: the filter that is added to every search."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations
    from pydantic import Field

    from munjang import __version__
    from munjang.index.documents import document_id

    server: MCPServer[Any] = MCPServer("munjang", instructions=INSTRUCTIONS, version=__version__)
    lock = threading.Lock()  # tools may run in several threads; a store has one user at a time
    fields = ", ".join(f"{name} ({kind})" for name, kind in index.store.schema.fields.items()) or "none yet"
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]

    def search(query: text, k: Annotated[int, Field(ge=1, le=MAX_HITS)] = 10, where: text | None = None) -> Any:
        with lock:
            index.count(where)  # refuses a filter that could get around our own by its parentheses
            both = " and ".join(f"({part})" for part in (where, own) if part is not None) or None
            hits = index.search(query, k, where=both, rerank=scorer)
        names = ("document_id", "text", "metadata", "score")
        return {"hits": [{name: getattr(hit, name) for name in names} for hit in hits]}

    def get(document_id: text) -> Any:
        with lock:
            passages = index.get(index.store.passages([document_id]).get(document_id, []))
            quoted = document_id.replace("'", "''")
            if not passages or (own and not index.count(f"document_id = '{quoted}' and ({own})")):
                raise InputError(f"There is no document {document_id!r}.")
        return {"id": document_id, "metadata": passages[0].metadata, "passages": [each.text for each in passages]}

    def add(
        documents: Annotated[list[text], Field(min_length=1, max_length=MAX_DOCUMENTS)],
        metadata: dict[str, str | bool | int | float] | None = None,
    ) -> Any:
        values = metadata or {}
        ids = list(dict.fromkeys(document_id(each, values) for each in documents))
        with lock:
            index.upsert(list(dict.fromkeys(documents)), ids, [values] * len(ids), progress=False)
        return {"ids": ids}

    def delete(ids: Annotated[list[text], Field(min_length=1, max_length=MAX_DOCUMENTS)]) -> Any:
        with lock:
            return {"deleted": index.delete(ids)}

    filters = f"`where` filters by metadata, such as \"year >= 2020 and lang = 'ko'\"; fields: {fields}."
    server.add_tool(_told(search), description=f"Find passages. {filters}", annotations=reading)
    server.add_tool(_told(get), description="Read a whole document by its id.", annotations=reading)
    if can_write:
        changing = ToolAnnotations(read_only_hint=False, idempotent_hint=True, open_world_hint=False)
        server.add_tool(_told(add), description="Add texts as documents, with the same metadata.", annotations=changing)
        server.add_tool(_told(delete), description="Delete documents by their ids.", annotations=changing)
    return server


def _told(tool: Any) -> Any:
    """Let a tool's errors be read by the model that called it: ours as they are, of others the class alone."""
    from functools import wraps

    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def told(*given: Any, **named: Any) -> Any:
        try:
            return tool(*given, **named)
        except MunjangError as error:
            raise ToolError(str(error)) from None
        except Exception as error:
            raise ToolError(f"The search failed: {type(error).__name__}.") from None

    return told
