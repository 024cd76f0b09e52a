"""munjang search QUERY FILES...: search files, or an index with --index.

munjang search "수도가 어디야?" notes/
munjang search "수도가 어디야?" notes/*.txt --model path/to/model
munjang search "capital of Korea" --index notes-index --rerank path/to/cross-encoder -k 5
"""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from munjang.cli.options import option
from munjang.errors import InputError
from munjang.stores import LASTING_LOCATIONS

SUMMARY_KO = "파일이나 색인에서 찾기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang search`."""

    query: str = option("what to search for", is_positional=True, metavar="QUERY")
    files: tuple[str, ...] = option(
        "files and folders to search: .txt .md, or tables with one document per row",
        default=(),
        is_positional=True,
        metavar="FILE",
    )
    index: str | None = option(f"search this index instead: {LASTING_LOCATIONS}", default=None)
    name: str = option("name of the index at that place", default="default")
    model: str | None = option(
        "folder or Hub name of the model (default: the bundled one; an index remembers its own)",
        default=None,
        short="-m",
    )
    rerank: str | None = option(
        "re-rank the candidates with this cross-encoder or late-interaction model", default=None
    )
    rerank_weight: float | None = option(
        "weight of the re-ranker in the final order, 0 to 1; retrieval has the rest (default: the re-ranker's own, "
        "or 1)",
        default=None,
    )
    k: int = option("number of hits to show", default=10, short="-k")
    candidates: int = option("number of passages to retrieve before re-ranking", default=100)
    where: str | None = option("filter by metadata, such as \"year >= 2020 and lang = 'ko'\"", default=None)
    by: tuple[str, ...] = option(
        "ways to search: words (BM25), dense (vectors), sparse, late (tokens) (default: all that the index has)",
        default=(),
        metavar="WAY",
    )
    fusion: Literal["scores", "ranks"] = option("how several ways become one order", default="scores")
    diversity: float = option("prefer hits unlike those before them: 0 is off, 1 the most", default=0.0)
    min_score: float | None = option("leave out hits of lower relevance, 0 to 1, in a calibrated index", default=None)
    around: str = option("show so many passages on either side of a hit's own, or the whole document", default="0")
    passages: bool = option("show every passage, not only the best of each document", default=False)
    column: str | None = option("text column of tables (default: recognized by name)", default=None)
    lines: bool = option("read each line of a .txt as a document", default=False)
    json: bool = option("print one JSON object per line", default=False)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    quiet: bool = option("print errors only", default=False)


def run(options: Options) -> int:
    """Open an index or build one of the files, search it, print the hits."""
    if bool(options.files) == (options.index is not None):
        raise InputError("Where to look? Give files, or --index with the place of an index")
    for place in filter(_is_index, options.files):
        raise InputError(f"{place} is an index, not a folder of texts; search it with --index {shlex.quote(place)}")
    rerank = _reranking(options)  # fails before the files are read, which can take long
    from munjang.index import Index

    if options.index is not None:
        index = Index.open(options.index, options.model, options.name, create=False, device=options.device)
    else:
        index = _of_files(options)
    with index:
        group = "passage" if options.passages else "document"
        hits = index.search(
            options.query,
            options.k,
            rerank=rerank,
            candidates=options.candidates,
            where=options.where,
            group=group,
            by=options.by or None,
            fusion=options.fusion,
            diversity=options.diversity,
            min_score=options.min_score,
            around=int(options.around) if options.around.isdigit() else options.around,
        )
    for hit in hits:
        print(json.dumps(hit.as_dict(), ensure_ascii=False) if options.json else shown(hit))
    if not hits and not options.quiet:
        print("nothing was found", file=sys.stderr)
    return 0


def _is_index(place: str) -> bool:
    """Tell whether a folder holds an index: a table, and its record beside it."""
    return any(table.with_suffix(".json").is_file() for table in Path(place).glob("*.lance"))


def _reranking(options: Options) -> Any:
    """Load the re-ranker; return None if none is named."""
    if options.rerank is None:
        if options.rerank_weight is not None:
            raise InputError("--rerank-weight needs --rerank, a cross-encoder")
        return None
    from munjang.index.rerank import Reranking, load_scorer

    return Reranking(load_scorer(options.rerank, options.device, options.dtype), weight=options.rerank_weight)


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
    """Return a hit as two readable lines."""
    text = " ".join(hit.text.split())
    text = text if len(text) <= 300 else text[:299] + "…"
    source = hit.metadata.get("source", hit.document_id)
    ways = ", ".join(f"{way} {rank}" for way, rank in hit.ranks.items())
    return f"{hit.score:7.4f}  {source} [{hit.start}:{hit.end}]  ({ways})\n         {text}"
