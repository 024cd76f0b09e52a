"""munjang encode INPUT... -o OUT: encode files to vectors, in blocks, so that an interrupted run can be resumed.

munjang encode sentences.txt -o vectors.npy
munjang encode news.jsonl.gz more.csv -o vectors.parquet --model path/to/model --column title
munjang encode parts/ -o vectors --model path/to/model --id-column id --ray     on a Ray cluster: docs/guides/scale.md
"""

import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.options import option
from munjang.data.files import STDIN, replacing
from munjang.data.tables import format_of, read_texts
from munjang.errors import InputError, TruncationWarning, unknown
from munjang.progress import Progress

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.bi_encoder import BiEncoder
    from munjang.data.blocks import Blocks


SUMMARY_KO = "파일의 문장을 벡터로; 중단된 작업은 이어서"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang encode`."""

    inputs: tuple[str, ...] = option(
        "files of texts: .txt .csv .tsv .jsonl .parquet, also with .gz .xz .bz2; - is standard input",
        is_positional=True,
        metavar="INPUT",
    )
    output: str = option("output file: .npy, .parquet or .jsonl", short="-o")
    model: str | None = option("folder or Hub name of the model (default: the bundled one)", default=None, short="-m")
    column: str | None = option("text column (default: recognized by name)", default=None)
    format: Literal["txt", "csv", "tsv", "json", "jsonl", "parquet"] | None = option(
        "input format (default: by suffix)", default=None
    )
    prompt: str | None = option("put this before every text", default=None, one_of="prompt")
    prompt_name: str | None = option(
        "put the model's prompt of this name before every text", default=None, one_of="prompt"
    )
    query: bool = option("encode as queries, with the model's query prompt", default=False, one_of="prompt")
    document: bool = option("encode as documents, with the model's document prompt", default=False, one_of="prompt")
    normalize: bool | None = option("scale vectors to unit length (default: as the model does)", default=None)
    truncate_dim: int | None = option("keep this many leading dimensions", default=None)
    precision: Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"] = option(
        "type of the written vectors", default="float32"
    )
    long: Literal["truncate", "average", "error"] = option(
        "handling of texts longer than the model reads", default="truncate"
    )
    batch_tokens: int | None = option("tokens per batch (default: tuned for the machine)", default=None)
    chunk_rows: int = option("texts per block: the most that a killed run loses", default=4096)
    device: str | None = option(
        "cpu, cuda, cuda:1, mps, or several: cuda:0,cuda:1 (default: the best available)", default=None
    )
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    keep_text: bool = option("write the texts next to their vectors (.parquet and .jsonl)", default=False)
    ray: tuple[str, ...] | None = option(
        "encode on a Ray cluster into a folder of Parquet files; run on one of its nodes. auto or HOST:6379 "
        "(default: RAY_ADDRESS, else this machine)",
        default=None,
        metavar="ADDRESS",
    )
    id_column: str | None = option("with --ray: id column (default: number the rows)", default=None)
    text_hash: bool = option("with --ray: write a hash of each text next to its vector", default=False)
    sort: bool = option("with --ray: sort the rows of all files by id", default=False)
    block_rows: int | None = option(
        "with --ray: texts per block; a block is one file, and the most that a killed worker loses (default: by "
        "device)",
        default=None,
    )
    workers: int | None = option(
        "with --ray: number of workers (default: one per GPU, or one per 4 cores)", default=None
    )
    restart: bool = option("start over and replace an existing output", default=False)
    quiet: bool = option("print errors only", default=False)


# Options that change the vectors: a block of an earlier run is valid only if they are the same. `batch_tokens` and
# `threads` change the speed and at most the last bits; a run must be able to resume with a smaller batch.
VECTOR_OPTIONS = (
    *("column", "format", "prompt", "prompt_name", "query", "document", "normalize", "truncate_dim"),
    *("precision", "long", "chunk_rows", "keep_text"),
)
RAY_OPTIONS = ("id_column", "text_hash", "sort", "block_rows", "workers")
PROGRESS_ROWS = 65_536  # between two updates of the progress bar


def run(options: Options) -> int:
    """Check the options, encode block by block, join the blocks."""
    output = Path(options.output)
    if options.ray is not None:
        return _on_ray(options, options.ray)
    _check(options, output)
    from munjang.data.blocks import Blocks

    with Blocks(output) as parts:
        if output.exists() and not parts.is_begun() and not options.restart:
            raise InputError(f"{output} is already there; choose another name, or replace it with --restart")
        from munjang.bi_encoder import BiEncoder  # torch takes seconds: import it after the cheap checks

        devices = None if options.device is None else [name.strip() for name in options.device.split(",")]
        model = BiEncoder.load(options.model, device=devices, dtype=options.dtype, threads=options.threads)
        encode = _encoder(model, options)
        empty = encode([])  # fails now, before the inputs are read, if the model rejects an option
        settings = _settings(options, model)
        num_texts = _prepare(parts, options, settings)
        try:
            _encode(encode, parts, options, num_texts)
            if parts.num_finished() == 0:
                parts.write(0, empty, [] if options.keep_text else None)  # no texts: the file still has shape and type
            if _settings(options, model) != settings or num_texts not in (None, parts.num_rows()):
                raise InputError("An input was changed while it was read; run the command again")
            _assemble(parts, options)
        except BaseException as error:
            if isinstance(error, InputError) or not all(map(_is_file, options.inputs)):
                parts.clear()  # the same command can't resume from here
            elif isinstance(error, KeyboardInterrupt):
                _say(options, f"stopped after {parts.num_finished()} blocks; repeat the command to resume")
            raise
    return 0


def _on_ray(options: Options, addresses: tuple[str, ...]) -> int:
    """Encode in blocks on the workers of a Ray cluster."""
    from munjang.scale.command import Request, encode_on_ray

    for address in addresses:
        if len(addresses) > 1 or not (":" in address or address in ("auto", "local")):
            raise InputError(f"--ray {address} is not an address like auto or HOST:6379; put --ray after the inputs")
    if options.chunk_rows != Options.chunk_rows:
        raise InputError("--chunk-rows is for one machine; with --ray give --block-rows")
    values = {name: value for name, value in asdict(options).items() if name not in ("ray", "chunk_rows")}
    encode_on_ray(Request(**values, address=addresses[0] if addresses else None))
    return 0


def _check(options: Options, output: Path) -> None:
    """Raise InputError now for what would otherwise fail after hours."""
    from munjang.data.vectors import WRITERS, require_pyarrow

    for name in RAY_OPTIONS:
        if getattr(options, name) not in (None, False):
            raise InputError(f"--{name.replace('_', '-')} goes with --ray")
    if output.suffix not in WRITERS:
        raise unknown("suffix of the output", output.suffix, WRITERS)
    if output.suffix == ".parquet":
        require_pyarrow()
    if options.keep_text and output.suffix == ".npy":
        raise InputError("--keep-text: a .npy file has no place for texts; write .parquet or .jsonl")
    if not output.parent.is_dir():
        raise InputError(f"The folder {output.parent} doesn't exist; create it first")
    if output.is_dir():
        raise InputError(f"{output} is a folder; give the name of a file")
    if options.chunk_rows < 1:
        raise InputError(f"--chunk-rows must be at least 1, not {options.chunk_rows}")
    if options.inputs.count(STDIN) > 1:
        raise InputError("Standard input (-) can be read only once")
    for path in options.inputs:
        format_of(path, options.format)
        if path != STDIN:
            os.stat(path)  # a missing file is an error; /dev/stdin and <(...) are there, though they have no full name
        if path != STDIN and output.exists() and os.path.samefile(path, output):
            raise InputError(f"{path} is both input and output")


def _is_file(path: str) -> bool:
    """Tell whether a path can be read twice: not standard input, not a pipe such as a shell's <(...)."""
    return path != STDIN and Path(path).is_file()


def _settings(options: Options, model: "BiEncoder") -> dict[str, object]:
    """Return everything that determines the content of a block."""
    paths = [os.path.abspath(path) if _is_file(path) else path for path in options.inputs]
    settings: dict[str, object] = {"inputs": paths}
    for path in filter(_is_file, paths):
        status = os.stat(path)
        settings[f"size and time of {path}"] = [status.st_size, status.st_mtime_ns]
    computed = {"model": model.fingerprint, "device": model.device.type, "dtype": str(model.dtype)}
    values = asdict(options)
    return settings | computed | {name: values[name] for name in VECTOR_OPTIONS}


def _prepare(parts: "Blocks", options: Options, settings: dict[str, object]) -> int | None:
    """Resume the previous run or begin a new one; return the number of texts if it can be known."""
    job = None if options.restart else parts.job(settings)
    num_texts: int | None = None
    if not all(map(_is_file, options.inputs)):
        _say(options, "standard input or a pipe can't be read twice: an interrupted run will have to start over")
    elif job is not None:
        _say(options, f"resuming: {parts.num_finished()} blocks of {options.chunk_rows} texts are already done")
        num_texts = job["num_rows"]
        return num_texts
    else:
        num_texts = _count(options)
    parts.begin(settings, num_texts)
    return num_texts


def _texts(options: Options) -> Iterator[str]:
    return chain.from_iterable(read_texts(path, options.column, options.format) for path in options.inputs)


def _count(options: Options) -> int:
    """Count the texts by reading everything once, which also finds a bad row at the end before hours of work."""
    num_texts = 0
    with Progress(label="checking the input", enabled=not options.quiet) as progress:
        for num_texts, _ in enumerate(_texts(options), 1):
            if num_texts % PROGRESS_ROWS == 0:
                progress.advance(PROGRESS_ROWS)
    return num_texts


def _encode(encode: Callable[[Any], Any], parts: "Blocks", options: Options, num_texts: int | None) -> None:
    """Encode and write the missing blocks."""
    first = parts.num_finished()
    num_done = first * options.chunk_rows
    waiting: deque[str] = deque()  # texts that were read and whose vectors are still being computed

    def remembered() -> Iterator[str]:
        for text in islice(_texts(options), num_done, None):
            if options.keep_text:
                waiting.append(text)
            yield text

    with _count_cuts(options), Progress(num_texts, "encoding", enabled=not options.quiet) as progress:
        progress.skip(min(num_done, num_texts or 0))
        for number, vectors in enumerate(encode(remembered()), first):
            texts = [waiting.popleft() for _ in vectors] if options.keep_text else None
            parts.write(number, vectors, texts)
            progress.advance(len(vectors))


@contextmanager
def _count_cuts(options: Options) -> Iterator[None]:
    """Report truncated texts in one warning instead of one per block."""
    num_cut = 0
    show = warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        nonlocal num_cut
        if issubclass(category, TruncationWarning):
            num_cut += int(str(message).split()[0])  # the message begins with the count
        else:
            show(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TruncationWarning)
        warnings.showwarning = note
        yield
    if num_cut:
        _say(options, f"warning: {num_cut:,} texts were longer than the model reads and were cut; see --long")


def _encoder(model: "BiEncoder", options: Options) -> Callable[[Any], Any]:
    settings: dict[str, Any] = {
        "normalize": options.normalize,
        "truncate_dim": options.truncate_dim,
        "precision": options.precision,
        "long": options.long,
        "batch_tokens": options.batch_tokens,
        "chunk_rows": options.chunk_rows,
        "progress": False,  # our own bar includes the blocks of earlier runs
    }
    if options.query:
        return partial(model.encode_query, **settings)
    if options.document:
        return partial(model.encode_document, **settings)
    return partial(model.encode, prompt=options.prompt, prompt_name=options.prompt_name, **settings)


def _assemble(parts: "Blocks", options: Options) -> None:
    """Join all blocks into one file. If killed here, the next run finds all blocks done and joins them again."""
    from munjang.data.vectors import WRITERS

    output = Path(options.output)
    num_rows = parts.num_rows()
    with replacing(output, temporary=parts.folder / "output.tmp") as file:
        WRITERS[output.suffix](file, parts.read(), num_rows)
    parts.clear()
    _say(options, f"{num_rows:,} vectors in {output}")


def _say(options: Options, message: str) -> None:
    if not options.quiet:
        print("munjang:", message, file=sys.stderr)
