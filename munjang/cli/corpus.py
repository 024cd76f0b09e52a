"""Options and steps shared by commands over a corpus: texts of files, ready vectors, the model, the page."""

import sys
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.options import option
from munjang.data.files import replacing
from munjang.data.tables import read_texts
from munjang.errors import InputError

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.types import Floats


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of every command over texts: where to compute, what to write beside the result."""

    html: str | None = option("write a page with a picture to this file", default=None, metavar="OUT")
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    replace: bool = option("replace existing outputs", default=False)
    quiet: bool = option("print errors only", default=False)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(RunOptions):
    """Options of every command that reads one corpus."""

    inputs: tuple[str, ...] = option(
        "files of texts: .txt .csv .tsv .jsonl .parquet, also with .gz .xz .bz2; - is standard input",
        is_positional=True,
        metavar="INPUT",
    )
    output: str = option("output file: .csv, .tsv, .jsonl or .parquet", short="-o")
    model: str | None = option("folder or Hub name of the model (default: the bundled one)", default=None, short="-m")
    vectors: str | None = option(
        "use these vectors of the texts, from `munjang encode -o x.npy`, instead of a model", default=None
    )
    column: str | None = option("text column (default: recognized by name)", default=None)
    format: Literal["txt", "csv", "tsv", "json", "jsonl", "parquet"] | None = option(
        "input format (default: by suffix)", default=None
    )


def check_outputs(options: RunOptions, *tables: str | None) -> None:
    """Raise InputError now if an output could not be written later."""
    from munjang.data.writing import check_file, check_suffix

    for name in filter(None, tables):
        check_suffix(Path(name))
    if options.html is not None:
        check_file(Path(options.html))
    names = [name for name in (*tables, options.html) if name is not None]
    if len(set(map(Path, names))) < len(names):
        raise InputError("Two outputs have the same name; choose another for one of them")
    for name in names:
        if Path(name).exists() and not options.replace:
            raise InputError(f"{name} is already there; choose another name, or replace it with --replace")


def read_corpus(options: CorpusOptions, paths: tuple[str, ...]) -> list[str]:
    """Read all texts of the files."""
    texts = list(chain.from_iterable(read_texts(path, options.column, options.format) for path in paths))
    if not texts:
        raise InputError(f"There are no texts in {', '.join(paths)}")
    return texts


def corpus_vectors(options: RunOptions, texts: list[str], vectors: str | None, model: Any) -> "Floats":
    """Return unit vectors of the texts: read from a file, or encoded by the model."""
    from munjang.tasks.vectors import unit_vectors

    progress = not options.quiet
    if vectors is None:
        return unit_vectors(texts, model, progress=progress)
    import numpy as np

    try:
        stored = np.load(vectors, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{vectors} is not a valid .npy file: {error}") from None
    if not isinstance(stored, np.ndarray) or stored.ndim != 2:
        given = f"an array of shape {stored.shape}" if isinstance(stored, np.ndarray) else "an .npz archive"
        raise InputError(f"{vectors} should be an .npy matrix, a row for each text, not {given}")
    if len(stored) != len(texts):
        raise InputError(f"{vectors} holds {len(stored):,} vectors, but there are {len(texts):,} texts")
    return unit_vectors(stored, what=f"vectors of {vectors}")


def check_unused(options: RunOptions, where: str, *names: str) -> None:
    """Raise InputError for options that were set but would be ignored."""
    defaults = {each.name: each.default for each in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            raise InputError(f"--{name.replace('_', '-')} is not used {where}: leave it out")


def load_model(options: CorpusOptions) -> Any:
    """Load the model; return None if ready vectors are given."""
    if options.vectors is not None:
        if options.model is not None:
            raise InputError("--vectors are ready: leave --model out")
        return None
    from munjang.bi_encoder import BiEncoder

    return BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)


def write_page(path: str, page: str) -> None:
    """Write a page atomically."""
    with replacing(Path(path)) as file:
        file.write(page.encode())


def say(options: RunOptions, message: str) -> None:
    """Print a message to standard error unless --quiet."""
    if not options.quiet:
        print("munjang:", message, file=sys.stderr)
