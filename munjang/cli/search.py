"""munjang search QUERY FILES...: find what files say about something; or ask an index with --index.

munjang search "수도가 어디야?" notes/
munjang search "수도가 어디야?" notes/*.txt --model path/to/model
munjang search "capital of Korea" --index notes-index --rerank path/to/cross-encoder -k 5
"""

import json
import sys
from dataclasses import dataclass
from typing import Any, Literal

from munjang.cli.options import option
from munjang.errors import InputError
from munjang.stores import LASTING_LOCATIONS

SUMMARY_KO = "파일이나 색인에서 찾기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Of `munjang search`."""

    query: str = option("what to look for", is_positional=True, metavar="QUERY")
    files: tuple[str, ...] = option(
        "files and folders to look in: .txt .md, or tables with a document a row",
        default=(),
        is_positional=True,
        metavar="FILE",
    )
    index: str | None = option(f"look in this index instead: {LASTING_LOCATIONS}", default=None)
    name: str = option("name of the index at that place", default="default")
    model: str | None = option(
        "folder or Hub name of the model (default: the bundled one; an index knows its own)", default=None, short="-m"
    )
    rerank: str | None = option("order the candidates once more with this cross-encoder", default=None)
    rerank_weight: float | None = option(
        "its share of the final order, 0 to 1; the retrieval has the rest (default: what its folder states, or 1)",
        default=None,
    )
    k: int = option("hits to show", default=10, short="-k")
    candidates: int = option("passages that are found before they are ordered once more", default=100)
    where: str | None = option("filter by metadata, such as \"year >= 2020 and lang = 'ko'\"", default=None)
    hybrid: bool = option("look for words as well (BM25)", default=False)
    passages: bool = option("show every passage, not the best of each document", default=False)
    column: str | None = option("column of tables that holds the text (default: by its name)", default=None)
    lines: bool = option("a .txt has a document a line", default=False)
    json: bool = option("print an object a line", default=False)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best there is)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "type to compute in (default: by device); int8 is for a CPU", default=None
    )
    quiet: bool = option("say nothing but errors", default=False)


def run(options: Options) -> int:
    """Open or make an index, ask it, print the hits."""
    if bool(options.files) == (options.index is not None):
        raise InputError("Where to look? Give files, or --index with the place of an index")
    rerank = _reranking(options)  # before the files are read, which can take long
    from munjang.index import Index

    if options.index is not None:
        index = Index.open(options.index, options.model, options.name, create=False, device=options.device)
    else:
        index = _of_files(options)
    with index:
        group = "passage" if options.passages else "document"
        hits = index.search(options.query, options.k, options.candidates, options.where, rerank, group, options.hybrid)
    for hit in hits:
        print(json.dumps(hit.as_dict(), ensure_ascii=False) if options.json else shown(hit))
    if not hits and not options.quiet:
        print("nothing was found", file=sys.stderr)
    return 0


def _reranking(options: Options) -> Any:
    """How to order once more; None: not at all."""
    if options.rerank is None:
        if options.rerank_weight is not None:
            raise InputError("--rerank-weight is the share of a cross-encoder; name it with --rerank")
        return None
    from munjang.cross_encoder import CrossEncoder
    from munjang.index.rerank import Reranking

    scorer = CrossEncoder.load(options.rerank, device=options.device, dtype=options.dtype)
    return Reranking(scorer, weight=options.rerank_weight)


def _of_files(options: Options) -> Any:
    from munjang.bi_encoder import BiEncoder
    from munjang.data.documents import Reading, read_documents
    from munjang.index import Index
    from munjang.index.ingest import ingest

    model = BiEncoder.load(options.model, device=options.device, dtype=options.dtype)
    index = Index.open("memory:", model)
    reading = Reading(column=options.column, is_lines=options.lines)
    ingest(index, read_documents(options.files, reading), progress=None if not options.quiet else False)
    return index


def shown(hit: Any) -> str:
    """A hit as two lines for a person."""
    text = " ".join(hit.text.split())
    text = text if len(text) <= 300 else text[:299] + "…"
    source = hit.metadata.get("source", hit.document_id)
    return f"{hit.score:7.4f}  {source} [{hit.start}:{hit.end}]\n         {text}"
