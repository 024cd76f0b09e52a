"""munjang index ACTION PLACE ...: build, update or inspect an index of documents.

munjang index build notes-index notes/
munjang index build notes-index notes/ --model path/to/model
munjang index build notes-index notes/ --sparse path/to/splade --late path/to/colbert      four ways to search
munjang index add notes-index more.jsonl                repeating it skips documents that are already there
munjang index build office-index reports/ --watch       HWPX, PDF, Word, ...; follows what changes in the folder
munjang index delete notes-index ID ID
munjang index info notes-index
munjang index compact notes-index
munjang index export notes-index rows.jsonl.gz          for `import` into an index of the same model
munjang index import notes-index vectors                bulk load of what `munjang encode --ray` wrote
munjang index synonyms notes-index synonyms.txt         lines such as "car, automobile" or "AI => 인공지능"
munjang index reembed notes-index --model another       recompute all vectors; the old ones serve until then
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.options import option
from munjang.errors import InputError
from munjang.stores import LASTING_LOCATIONS

if TYPE_CHECKING:
    from munjang.bi_encoder import BiEncoder
    from munjang.index import Index
    from munjang.stores.base import Schema


SOME_SKIPPED = 1  # the exit code where some files could not be read; all others are in the index
OPENING = ("sparse", "late", "tokens", "pool_factor", "overlap", "context")  # options of Index.open
SUMMARY_KO = "문서의 색인을 만들고, 바꾸고, 살펴보기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang index`."""

    action: Literal["build", "add", "delete", "info", "compact", "export", "import", "synonyms", "reembed"] = option(
        "build, add, delete, info, compact, export, import, synonyms or reembed", is_positional=True, metavar="ACTION"
    )
    place: str = option(LASTING_LOCATIONS, is_positional=True)
    inputs: tuple[str, ...] = option(
        "files and folders of documents; for delete, ids; for export and import, a file or a folder from encode --ray; "
        "for synonyms, a file",
        default=(),
        is_positional=True,
        metavar="INPUT",
    )
    name: str = option("name of the index at that place", default="default")
    model: str | None = option(
        "folder or Hub name of the model for a new index (default: the bundled one)", default=None, short="-m"
    )
    vectors: Literal["float32", "float16", "int8", "binary"] = option("precision of stored vectors", default="float32")
    chunk: int | None = option("maximum tokens per passage; 0: never split documents", default=None)
    sparse: str | None = option("keep sparse vectors of this model too (SPLADE, ...), to search by", default=None)
    late: str | None = option("keep token vectors of this model too (ColBERT, ...), to search by", default=None)
    tokens: Literal["int8", "float16", "float32"] | None = option(
        "precision of stored token vectors (default: int8)", default=None
    )
    pool_factor: float | None = option("keep one token vector of so many, merged by likeness", default=None)
    overlap: int | None = option("tokens that a passage repeats of the one before (default: 32)", default=None)
    context: Literal["none", "title", "headings"] | None = option(
        "what is read in front of a passage: the document's title, or the headings above it too", default=None
    )
    late_chunking: bool = option("read passages among their neighbours, as long as the model allows", default=False)
    column: str | None = option("text column of tables (default: recognized by name)", default=None)
    id_column: str | None = option("id column (default: recognized by name)", default=None)
    fields: tuple[str, ...] = option("columns to keep as metadata (default: all others)", default=())
    kinds: tuple[str, ...] = option("types of columns stored as text, such as year:int", default=())
    lines: bool = option("read each line of a .txt as a document", default=False)
    watch: bool = option("then keep watching the folders; add what changes, delete what disappears", default=False)
    watch_interval_s: float = option("seconds between two looks at the folders", default=2.0)
    prune: bool = option("delete documents whose file is no longer in the folders", default=False)
    max_file_s: float = option("seconds that reading one office file may take", default=60.0)
    max_file_memory_mb: int = option("megabytes of memory that reading one office file may take", default=2048)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    quiet: bool = option("print errors only", default=False)


def run(options: Options) -> int:
    """Run one action on one index."""
    from munjang.index import Index
    from munjang.index.schema import OpenOptions

    if options.action == "build" or options.action == "add":
        if not options.inputs:
            raise InputError("No documents: give files or folders")
        for path in options.inputs:
            if path != "-" and not Path(path).exists():
                raise InputError(f"{path}: there is no such file or folder")
        if options.watch and not all(Path(path).is_dir() for path in options.inputs):
            raise InputError("--watch follows folders; give folders only")
    elif options.action == "delete" and not options.inputs:
        raise InputError("Which documents? Give their ids")
    elif options.action in ("export", "import") and len(options.inputs) != 1:
        raise InputError(
            f"{options.action} takes one file, .jsonl or .jsonl.gz; import also a folder of `encode --ray`"
        )
    elif options.action == "synonyms" and len(options.inputs) != 1:
        raise InputError("synonyms takes one text file with a group in each line, such as: car, automobile")
    if options.action == "reembed":
        return _reembed(options)
    create = options.action in ("build", "import")
    given = (options.place, options.model, options.name, create, options.vectors, options.chunk, options.device)
    opening: OpenOptions = {name: getattr(options, name) for name in OPENING}  # type: ignore[assignment]
    opening["late_chunking"] = options.late_chunking or None  # not given: as the index was made
    check = _checked(options) if options.action == "import" else None
    with Index.open(*given, check=check, **opening) as index:
        return ACTIONS[options.action](index, options)


def _add(index: "Index", options: Options) -> int:
    from munjang.data.documents import Reading
    from munjang.data.office.extractor import Extractor, Limits
    from munjang.index.files import FileReader, FileSummary

    def tell(summary: FileSummary) -> None:
        _say(options, f"{summary}; {index.count():,} passages in {options.place}")

    kinds = dict(_kind(each) for each in options.kinds)
    reading = Reading(options.column, options.id_column, options.fields or None, kinds, options.lines)
    with Extractor(Limits(options.max_file_s, options.max_file_memory_mb)) as extractor:
        files = FileReader(index, extractor, reading, not options.quiet, _name_skipped)
        stamps = files.stamps(options.inputs) if options.watch else {}
        done = files.add(options.inputs)
        done.num_deleted = files.prune(options.inputs) if options.prune else 0
        tell(done)
        if options.watch:
            with suppress(KeyboardInterrupt):
                files.watch(options.inputs, options.watch_interval_s, tell, stamps)
            return 0
    return SOME_SKIPPED if done.skipped else 0


def _name_skipped(path: str, reason: str) -> None:
    print(f"munjang: skipped {path}: {reason}", file=sys.stderr)


def _kind(text: str) -> tuple[str, str]:
    name, colon, kind = text.rpartition(":")
    if not colon:
        raise InputError(f"--kinds {text}: expected NAME:TYPE, such as year:int")
    return name, kind


def _delete(index: "Index", options: Options) -> int:
    _say(options, f"{index.delete(options.inputs):,} of {len(options.inputs):,} documents deleted")
    return 0


def _info(index: "Index", options: Options) -> int:
    print(json.dumps(index.info(), indent=1, ensure_ascii=False, default=str))
    return 0


def _compact(index: "Index", options: Options) -> int:
    print(json.dumps(index.compact(), indent=1, ensure_ascii=False, default=str))
    return 0


def _synonyms(index: "Index", options: Options) -> int:
    number = index.set_synonyms(options.inputs[0])
    _say(options, f"{number:,} terms of {options.inputs[0]} also find others")
    return 0


def _export(index: "Index", options: Options) -> int:
    from munjang.index.transfer import export_rows

    number = export_rows(index, Path(options.inputs[0]), not options.quiet)
    _say(options, f"{number:,} passages written to {options.inputs[0]}")
    return 0


def _checked(options: Options) -> "Callable[[Schema, BiEncoder], None]":
    """Return what refuses an import before an index is created for it."""

    def check(schema: "Schema", model: "BiEncoder") -> None:
        from munjang.index.loading import check_source
        from munjang.index.transfer import check_file

        if not _is_folder(options):
            return check_file(Path(options.inputs[0]), schema)
        from munjang.scale.manifest import complete_manifest

        manifest = complete_manifest(options.inputs[0])
        check_source(schema, model, manifest.fingerprint, manifest.settings, manifest.dimension)

    return check


def _is_folder(options: Options) -> bool:
    return "://" in options.inputs[0] or Path(options.inputs[0]).is_dir()


def _import(index: "Index", options: Options) -> int:
    from munjang.index.transfer import import_rows

    if _is_folder(options):
        return _load(index, options)
    number = import_rows(index, Path(options.inputs[0]), not options.quiet)
    _say(options, f"{number:,} passages taken from {options.inputs[0]}; {index.count():,} in {options.place}")
    return 0


def _load(index: "Index", options: Options) -> int:
    """Load vectors that `munjang encode --ray` wrote, in bulk."""
    from munjang.index.loading import check_source, load_tables
    from munjang.scale.addresses import shown
    from munjang.scale.manifest import complete_manifest, tables

    folder = options.inputs[0]
    manifest = complete_manifest(folder)
    check_source(index.store.schema, index.model, manifest.fingerprint, manifest.settings, manifest.dimension)
    number = load_tables(index, tables(folder, manifest), manifest.num_rows, not options.quiet)
    _say(options, f"{number:,} vectors loaded from {shown(folder)}; {index.count():,} passages in {options.place}")
    return 0


def _reembed(options: Options) -> int:
    from munjang.bi_encoder import BiEncoder
    from munjang.index.transfer import reembed

    model = BiEncoder.load(options.model, device=options.device)
    beside = {"sparse": options.sparse, "late": options.late}
    number = reembed(options.place, model, options.model, options.name, not options.quiet, **beside)
    name = options.model or model.model.folder.name
    _say(options, f"{number:,} passages embedded; {options.place} has the vectors of {name} now")
    return 0


def _say(options: Options, words: str) -> None:
    if not options.quiet:
        print(words, file=sys.stderr)


ACTIONS: dict[str, Callable[[Any, Options], int]] = {
    "build": _add,
    "add": _add,
    "delete": _delete,
    "info": _info,
    "compact": _compact,
    "synonyms": _synonyms,
    "export": _export,
    "import": _import,
}
