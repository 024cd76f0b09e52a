"""Cut inputs into shards, each read by one worker, and blocks, each written as one output file.

A block is named by its input and its number in it, so a second run gives every block the same name. Text and JSON
lines are cut at any line; a shard of a Parquet file is some row groups, as those are decoded as a whole; what can only
be read from its beginning (compressed files, CSV with its quotes) is one shard.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from munjang.data.columns import choose_text, found
from munjang.data.files import COMPRESSIONS
from munjang.data.tables import SUFFIXES, format_of
from munjang.errors import InputError
from munjang.scale.addresses import inside, located, shown, sizes_in
from munjang.scale.sequential import object_of, rows_from_start

READ_BYTES = 1 << 23  # at a time, to count lines
LINE_FORMATS = ("txt", "jsonl")


@dataclass(frozen=True)
class Shard:
    """A contiguous part of one input: bytes of text, row groups of Parquet, or all of it."""

    file: int  # number of the input
    first_block: int
    first_row: int  # number among the rows of this input
    num_rows: int
    start: int  # in bytes, or row groups
    end: int
    columns: tuple[str, ...] = ()  # text, and id if there is an id column
    first_line: int = 0  # in the file

    def blocks(self, block_rows: int) -> list[str]:
        """Return the names of its blocks."""
        count = max(-(-self.num_rows // block_rows), 1)
        return [block_name(self.file, self.first_block + number) for number in range(count)]


def block_name(file: int, number: int) -> str:
    """Return the name of a block.

    >>> block_name(3, 17)
    '00003-000017'
    """
    return f"{file:05d}-{number:06d}"


def numbers_of(name: str) -> tuple[int, int]:
    """Return a block's input and its number in it, which order blocks; names do so only up to 99,999 inputs.

    >>> numbers_of("00003-000017")
    (3, 17)
    """
    file, number = name.split("-")
    return int(file), int(number)


def is_cut(address: str, format: str | None) -> bool:
    """Tell whether several workers can read one file at once."""
    is_compressed = shown(address).lower().endswith(tuple(COMPRESSIONS))
    return format_of(shown(address), format) in (*LINE_FORMATS, "parquet") and not is_compressed


def files_of(inputs: Sequence[str], format: str | None) -> list[str]:
    """Return all input files; those of a folder are ordered by name."""
    from pyarrow.fs import FileType

    files: list[str] = []
    for address in inputs:
        filesystem, path = located(address)
        kind = filesystem.get_file_info(path).type
        if kind == FileType.NotFound:
            raise InputError(f"{shown(address)} doesn't exist")
        if kind == FileType.Directory:
            names = sorted(name for name in sizes_in(address) if format is not None or _has_format(name))
            files += [inside(address, name) for name in names]
        else:
            files.append(address)
    for file in files:
        format_of(shown(file), format)
        if "://" in file and not is_cut(file, format):
            raise InputError(f"{shown(file)}: only .parquet and uncompressed .jsonl and .txt can be in an object store")
    if not files:
        raise InputError("There are no files to encode in " + ", ".join(map(shown, inputs)))
    return files


def _has_format(name: str) -> bool:
    return name.lower().endswith(tuple(suffix + ending for suffix in SUFFIXES for ending in ("", *COMPRESSIONS)))


def shards_of(number: int, address: str, choice: "Choice", block_rows: int) -> list[Shard]:
    """Cut one input into shards, its rows counted from 0."""
    kind = format_of(shown(address), choice.format)
    if not is_cut(address, choice.format):
        chosen: list[str] = []
        choose = partial(_remember, partial(choice.columns, shown(address)), chosen)
        rows = rows_from_start(address, choose, choice.format)
        count = sum(1 for _ in rows)
        return [Shard(number, 0, 0, count, 0, 0, tuple(chosen))] if count else []
    filesystem, path = located(address)
    if kind == "parquet":
        return list(_of_parquet(number, address, choice, block_rows))
    with filesystem.open_input_file(path) as file:
        columns = () if kind == "txt" else _columns_of_lines(file, partial(choice.columns, shown(address)))
        if kind == "txt":
            choice.columns(shown(address), ["text"])
        file.seek(0)
        return list(_of_lines(number, file, columns, block_rows))


@dataclass(frozen=True)
class Choice:
    """The columns and format to read."""

    column: str | None = None
    id_column: str | None = None
    format: str | None = None

    def columns(self, source: str, there: list[str]) -> list[str]:
        """Return the text column, then the id column if there is one."""
        names = [name for name in there if name != self.id_column]
        chosen = choose_text(source, self.column, names if self.column is None else there)
        return chosen if self.id_column is None else [*chosen, *found(source, [self.id_column], there)]


def id_kind_of(files: Sequence[str], choice: Choice) -> str:
    """Return "int" if rows are numbered or every file has an integer id column, else "text"."""
    if choice.id_column is None:
        return "int"
    from pyarrow import types
    from pyarrow.parquet import read_schema

    for file in files:
        if format_of(shown(file), choice.format) != "parquet":
            return "text"
        filesystem, path = located(file)
        with filesystem.open_input_file(path) as raw:
            schema = read_schema(raw)
        if choice.id_column in schema.names and not types.is_integer(schema.field(choice.id_column).type):
            return "text"
    return "int"


def _remember(choose: Any, chosen: list[str], there: list[str]) -> list[str]:
    chosen[:] = choose(there)
    return chosen


def _columns_of_lines(file: Any, choose: Any) -> tuple[str, ...]:
    """Choose columns by the first line that is a JSON object; a file without one has only bad rows."""
    rest = b""
    while data := file.read(1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if (columns := _keys(line)) is not None:
                return tuple(choose(columns))
    columns = _keys(rest)
    return () if columns is None else tuple(choose(columns))


def _keys(line: bytes) -> list[str] | None:
    row = object_of(line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape"))
    return list(row) if isinstance(row, dict) else None


def _of_lines(number: int, file: Any, columns: tuple[str, ...], block_rows: int) -> Iterator[Shard]:
    """Yield shards of `block_rows` lines, found by counting line feeds."""
    num_lines = start = position = num_blocks = 0
    while data := file.read(READ_BYTES):
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        for at in range(block_rows * (num_blocks + 1) - num_lines - 1, len(ends), block_rows):
            end = position + int(ends[at])
            first = num_blocks * block_rows
            yield Shard(number, num_blocks, first, block_rows, start, end, columns, first)
            start, num_blocks = end, num_blocks + 1
        num_lines += len(ends)
        position += len(data)
        is_open = not data.endswith(b"\n")
    if position > start:
        first = num_blocks * block_rows
        yield Shard(number, num_blocks, first, num_lines + is_open - first, start, position, columns, first)


def _of_parquet(number: int, address: str, choice: Choice, block_rows: int) -> Iterator[Shard]:
    """Yield shards of whole row groups; small ones are joined up to a block."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    filesystem, path = located(address)
    try:
        with filesystem.open_input_file(path) as raw, ParquetFile(raw) as file:
            columns = tuple(choice.columns(shown(address), file.schema_arrow.names))
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    except ArrowException as error:
        raise InputError(f"{shown(address)} can't be read as Parquet: {error}") from None
    num_blocks = first = start = rows = 0
    for group, size in enumerate([*sizes, 0]):
        is_last = group == len(sizes)
        if rows and (is_last or rows + size > block_rows):
            shard = Shard(number, num_blocks, first, rows, start, group, columns, first)
            yield shard
            num_blocks, first, start, rows = num_blocks + len(shard.blocks(block_rows)), first + rows, group, 0
        rows += size
