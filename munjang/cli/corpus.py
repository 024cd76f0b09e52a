"""What commands over a whole corpus share: files of texts, ready vectors, a model, a page."""

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
    """Where to compute and what to leave behind, of every command over texts."""

    html: str | None = option("write a page with a picture to this file", default=None, metavar="OUT")
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best there is)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "type to compute in (default: by device); int8 is for a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    replace: bool = option("replace outputs that are already there", default=False)
    config: str | None = option("TOML file of these options; flags win", default=None, metavar="FILE")
    quiet: bool = option("say nothing but errors", default=False)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(RunOptions):
    """Of every command whose one input is a corpus."""

    inputs: tuple[str, ...] = option(
        "files of texts: .txt .csv .tsv .jsonl .parquet, also with .gz .xz .bz2; - is standard input",
        is_positional=True,
        metavar="INPUT",
    )
    output: str = option("where to write: .csv, .tsv, .jsonl or .parquet", short="-o")
    model: str | None = option("folder or Hub name of the model (default: the bundled one)", default=None, short="-m")
    vectors: str | None = option("vectors of the texts, made by `munjang encode -o x.npy` (no model)", default=None)
    column: str | None = option("column that holds the text (default: by its name)", default=None)
    format: Literal["txt", "csv", "tsv", "jsonl", "parquet"] | None = option(
        "format of the inputs (default: by suffix)", default=None
    )


def check_outputs(options: RunOptions, *tables: str | None) -> None:
    """Refuse now what could not be written after the work is done."""
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
    """All texts of the files."""
    texts = list(chain.from_iterable(read_texts(path, options.column, options.format) for path in paths))
    if not texts:
        raise InputError(f"There are no texts in {', '.join(paths)}")
    return texts


def corpus_vectors(options: RunOptions, texts: list[str], vectors: str | None, model: Any) -> "Floats":
    """The vectors of texts, of length one: read from a file, or encoded by the model."""
    from munjang.tasks.vectors import unit_vectors

    progress = not options.quiet
    if vectors is None:
        return unit_vectors(texts, model, progress=progress)
    import numpy as np

    try:
        stored = np.load(vectors, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{vectors} is no .npy file: {error}") from None
    if not isinstance(stored, np.ndarray) or stored.ndim != 2:
        given = f"an array of shape {stored.shape}" if isinstance(stored, np.ndarray) else "an .npz archive"
        raise InputError(f"{vectors} should be an .npy matrix, a row for each text, not {given}")
    if len(stored) != len(texts):
        raise InputError(f"{vectors} holds {len(stored):,} vectors, but there are {len(texts):,} texts")
    return unit_vectors(stored, what=f"vectors of {vectors}")


def check_unused(options: RunOptions, where: str, *names: str) -> None:
    """Refuse options that were set but would not be read."""
    defaults = {each.name: each.default for each in fields(options)}
    for name in names:
        if getattr(options, name) != defaults[name]:
            raise InputError(f"--{name.replace('_', '-')} is not used {where}: leave it out")


def load_model(options: CorpusOptions) -> Any:
    """The model of the options; none where ready vectors are given."""
    if options.vectors is not None:
        if options.model is not None:
            raise InputError("--vectors are ready: leave --model out")
        return None
    from munjang.bi_encoder import BiEncoder

    return BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)


def write_page(path: str, page: str) -> None:
    """A page to disk, whole or not at all."""
    with replacing(Path(path)) as file:
        file.write(page.encode())


def say(options: RunOptions, message: str) -> None:
    """A line for people."""
    if not options.quiet:
        print("munjang:", message, file=sys.stderr)
