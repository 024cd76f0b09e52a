"""Texts from tables, streamed: .txt .csv .tsv .jsonl .parquet, compressed or not, or standard input."""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from munjang.data.columns import choose_pair, choose_text
from munjang.data.files import COMPRESSIONS, STDIN, label, read_lines
from munjang.errors import InputError, MissingExtra, unknown

Source: TypeAlias = str | os.PathLike[str]
# From a table's columns, the ones that the caller wants.
Choose: TypeAlias = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Broken:
    """A row that has no values, and why."""

    reason: str


# What a line of JSON holds; None where it is blank.
Object: TypeAlias = dict[str, object] | Broken | None
# Where it was (a line, or a row of a Parquet file) and the values of the chosen columns.
Row: TypeAlias = tuple[int, list[object] | Broken]

SUFFIXES = {".txt": "txt", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
MAX_FIELD_CHARACTERS = (
    1 << 24
)  # characters of a CSV field; a quote that is never closed would read the whole file as one


def read_texts(path: Source, column: str | None = None, format: str | None = None) -> Iterator[str]:
    """Yield the texts of one column, one row at a time. A row is a row: empty lines of a .txt are empty texts.

    `list(read_texts("sentences.csv", column="title"))`
    """
    choose = partial(choose_text, label(path), column)
    for _, (text,) in _checked(path, choose, format):
        yield text


def read_pairs(
    path: Source, columns: tuple[str, str] | None = None, format: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the texts of two columns, one row at a time."""
    choose = partial(choose_pair, label(path), columns)
    for _, (first, second) in _checked(path, choose, format):
        yield first, second


def format_of(path: Source, format: str | None = None) -> str:
    """Return the key of `READERS` for this path: as given, else by suffix; standard input is one text a line."""
    if format is not None:
        if format not in READERS:
            raise unknown("format", format, READERS)
        if format == "parquet" and os.fspath(path) == STDIN:
            raise InputError("Parquet can't be read from standard input; give the file's name")
        return format
    if os.fspath(path) == STDIN:
        return "txt"
    name = Path(path)
    inner = Path(name.stem) if name.suffix.lower() in COMPRESSIONS else name
    found = SUFFIXES.get(inner.suffix.lower())
    if found is None:
        raise InputError(f"{path}: the name doesn't tell the format; give --format (format=): {', '.join(READERS)}")
    if found == "parquet" and inner is not name:
        raise InputError(f"{path}: Parquet is compressed inside; decompress the file first")
    return found


def read_rows(path: Source, choose: Choose, format: str | None = None) -> Iterator[Row]:
    """Yield the values of the chosen columns as they are, row by row; for a bad row, what is wrong."""
    return READERS[format_of(path, format)](path, choose)


def place(path: Source, where: int, format: str | None = None) -> str:
    """Return the name of a row in errors."""
    return f"{label(path)}, {'row (from 0)' if format_of(path, format) == 'parquet' else 'line'} {where}"


def _checked(path: Source, choose: Choose, format: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield rows whose chosen values are all strings."""
    names: list[str] = []

    def remember(columns: list[str]) -> list[str]:
        names.extend(choose(columns))
        return names

    for where, values in read_rows(path, remember, format):
        if isinstance(values, Broken):
            raise InputError(f"{place(path, where, format)}: {values.reason}")
        for name, value in zip(names, values, strict=True):
            if not isinstance(value, str):
                found = "null" if value is None else f"{value!r:.40} ({type(value).__name__})"
                raise InputError(
                    f"{place(path, where, format)}: {name!r} is {found}, not a text; "
                    "drop or fill such rows, or choose --column"
                )
        yield where, values  # type: ignore[misc]  # just checked


def _read_txt(path: Source, choose: Choose) -> Iterator[Row]:
    choose(["text"])
    return ((number, [line]) for number, line in read_lines(path))


def _read_tsv(path: Source, choose: Choose) -> Iterator[Row]:
    """Tabs separate, and nothing is quoted: a quote is a character like any other."""
    return with_header(path, ((number, line.split("\t")) for number, line in read_lines(path)), choose)


def _read_csv(path: Source, choose: Choose) -> Iterator[Row]:
    return with_header(path, csv_rows(path, read_lines(path)), choose)


def csv_rows(path: Source, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each row, which quotes may spread over several lines, and the line where it begins."""
    # The limit is global and 131,072 characters by default: too few for a document.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD_CHARACTERS))
    rows = csv.reader((line + "\n" for _, line in lines), strict=True)
    first = 1
    try:
        for row in rows:
            if row:  # a blank line is no row, as in pandas; an empty text is written ""
                yield first, row
            first = rows.line_num + 1
    except csv.Error as error:
        raise InputError(f"{label(path)}, line {first}: {error}; is a quote missing, or not doubled?") from None


def with_header(path: Source, rows: Iterable[tuple[int, list[str]]], choose: Choose) -> Iterator[Row]:
    """Yield the chosen columns of rows, the first of which names all of them."""
    lines = iter(rows)
    header = next(lines, None)
    if header is None:
        raise InputError(f"{label(path)} is empty; its first line must name the columns")
    columns = header[1]
    places = [columns.index(name) for name in choose(columns)]
    for number, fields in lines:
        if len(fields) != len(columns):
            if fields == [""]:
                continue  # a blank line can't be a row of several columns
            yield number, Broken(f"{len(fields)} fields, but the header has {len(columns)} columns")
        else:
            yield number, [fields[place] for place in places]


def _read_jsonl(path: Source, choose: Choose) -> Iterator[Row]:
    return json_rows(read_lines(path), choose)


def json_object(line: str) -> Object:
    """Parse a line of JSON; None for a blank one, which is not a row."""
    if not line or line.isspace():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Broken(f"not JSON ({error}); repair or drop this line")
    return row if isinstance(row, dict) else Broken(f'expected an object like {{"text": "..."}}, not {line:.40}')


def json_rows(
    lines: Iterable[tuple[int, str]], choose: Choose, parse: Callable[[str], Object] = json_object
) -> Iterator[Row]:
    """Yield the chosen columns of lines of JSON; the first object says what there is to choose from."""
    names: list[str] = []
    for number, line in lines:
        row = parse(line)
        if isinstance(row, dict):
            names = names or choose(list(row))
            yield number, json_values(row, names)
        elif row is not None:
            yield number, row


def json_values(row: dict[str, object], names: Sequence[str]) -> list[object] | Broken:
    """Return the values of the columns, or what is wrong if the object lacks one."""
    missing = [name for name in names if name not in row]
    if missing:
        return Broken(f"no {missing[0]!r}; it has {', '.join(row) or 'nothing'}"[:300])
    return [row[name] for name in names]


def _read_parquet(path: Source, choose: Choose) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Reading Parquet") from None
    try:
        with ParquetFile(path) as file:
            names = choose(file.schema_arrow.names)
            start = 0
            for batch in file.iter_batches(batch_size=4096, columns=names):
                values = [batch.column(name).to_pylist() for name in names]
                yield from enumerate(map(list, zip(*values, strict=True)), start)
                start += batch.num_rows
    except ArrowException as error:
        raise InputError(f"{path} can't be read as Parquet: {error}") from None


READERS: dict[str, Callable[[Source, Choose], Iterator[Row]]] = {
    "txt": _read_txt,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}
