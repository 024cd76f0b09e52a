"""Sources of rows: a file, a folder of files, a list of either, a dataset of the Hub, or an object with rows."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from munjang.data.files import STDIN, label
from munjang.data.objects import Held, dataset_rows, held_rows, is_held, is_stream, name_held, stream_rows
from munjang.data.published import PUBLISHED, Shape, split_of
from munjang.data.rows import Choose, Row
from munjang.data.tables import format_of, place, read_rows
from munjang.errors import InputError, MissingExtra

HUB = "hub:"
ABOUT_DATA = re.compile(r"(\d+-)?(readme|licen[cs]e|copying|notice|changelog)", re.IGNORECASE)  # beside it, in folders
Sources: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Held


@dataclass(frozen=True)
class Table:
    """Rows of one file or dataset."""

    name: str
    read: Callable[[Choose], Iterator[Row]]
    place: Callable[[int], str]  # what an error calls a row
    shape: Shape | None = None  # of a published dataset
    notes: tuple[str, ...] = ()


def tables(source: Sources, format: str | None = None, split: str | None = None) -> list[Table]:
    """List the tables of a source, in the order in which rows are numbered.

    Of a folder with files for training and for testing, `split` takes those of one split by their names.
    """
    if not isinstance(source, (str, os.PathLike)):
        if is_stream(source) or is_held(source):
            return [_held(source)]
        if not source:
            raise InputError("No data: the list of files is empty")
        return [table for item in source for table in tables(item, format, split)]
    if os.fspath(source).startswith(HUB):
        return [_hub(os.fspath(source))]
    if os.fspath(source) == STDIN or not Path(source).is_dir():
        if os.fspath(source) != STDIN and not Path(source).exists():
            raise InputError(f"{source}: no such file or folder; a dataset of the Hub is written {HUB}owner/name")
        return [_file(source, format)]
    files, notes = _files(Path(source))
    if not files:
        raise InputError(
            f"{source}: no tables in this folder (.csv, .tsv, .json, .jsonl, .parquet, .txt, compressed or not)"
        )
    chosen = [path for path in files if split_of(path) == split] if split is not None else files
    if chosen and len(chosen) < len(files):
        notes = [f"of the folder {source}, the files of the split {split}: {', '.join(path.name for path in chosen)}"]
    several = [_file(path, format) for path in chosen or files]
    return [replace(table, notes=(*table.notes, *notes)) for table in several]


def splits_of(source: Sources) -> set[str]:
    """Return the splits that the names of a folder's files state; none for anything else."""
    if not isinstance(source, (str, os.PathLike)) or not Path(source).is_dir():
        return set()
    return {split for path in _files(Path(source))[0] if (split := split_of(path)) is not None}


def name_of(several: Sequence[Table]) -> str:
    """Return the name of several tables in errors and reports."""
    return several[0].name if len(several) == 1 else f"{several[0].name} and {len(several) - 1} more"


def _files(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the tables of a folder, of two files that are one dataset the first; and a note of halves without another.

    SemEval publishes scores of sentences that it may not publish, and of all its sets together.
    """
    files: list[Path] = []
    seconds: set[Path] = set()
    lone: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path not in seconds and _is_table(path):
            shape = PUBLISHED.get(format_of(path))
            partner = None if shape is None or shape.partner is None else shape.partner(path)
            if partner is not None and not partner.is_file():
                lone.append(path)
            else:
                files.append(path)
                seconds |= {partner} if partner is not None else set()
    names = ", ".join(path.name for path in lone)
    return files or lone, [f"left out, half of a dataset without the other half: {names}"] if files and lone else []


def _file(path: str | os.PathLike[str], format: str | None) -> Table:
    name = format_of(path, format)  # a name that doesn't tell is an error before anything is read
    shape = PUBLISHED.get(name)
    notes = () if shape is None else (f"read as a file of {shape.title}",)
    return Table(
        label(path),
        lambda choose: read_rows(path, choose, format),
        lambda where: place(path, where, format),
        shape,
        notes,
    )


def _held(source: Held) -> Table:
    name = name_held(source)
    read = stream_rows if is_stream(source) else held_rows
    return Table(name, lambda choose: read(source, choose), lambda where: f"{name}, row (from 0) {where}")


def _is_table(path: Path) -> bool:
    if path.name.startswith(".") or ABOUT_DATA.fullmatch(path.stem):
        return False
    try:
        return bool(format_of(path))
    except InputError:
        return False


def _hub(source: str) -> Table:
    """Parse `hub:owner/name[/configuration][:split]`; the split is train by default."""
    name, _, split = source.removeprefix(HUB).partition(":")
    owner, _, rest = name.partition("/")
    dataset, _, configuration = rest.partition("/")
    if not owner or not dataset:
        raise InputError(f"{source!r} is not a dataset; write {HUB}owner/name or {HUB}owner/name:split")
    read = partial(_hub_rows, f"{owner}/{dataset}", configuration or None, split or "train")
    return Table(source, read, lambda where: f"{source}, row (from 0) {where}")


def _hub_rows(name: str, configuration: str | None, split: str, choose: Choose) -> Iterator[Row]:
    try:
        datasets = import_module("datasets")
    except ImportError:
        raise MissingExtra("datasets", "datasets", "Reading a dataset of the Hub") from None
    try:
        rows: Any = datasets.load_dataset(name, configuration, split=split)
    except (ValueError, OSError) as error:  # an unknown split or configuration, an unknown name, no connection
        raise InputError(f"{HUB}{name}, split {split!r}, can't be loaded: {error}") from error
    yield from dataset_rows(rows, choose)
