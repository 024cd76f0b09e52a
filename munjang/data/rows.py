"""Rows of tables: the chosen columns of CSV fields, of lines with a header, and of JSON objects."""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from munjang.data.files import label
from munjang.errors import InputError

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

# Of a CSV field: a quote that is never closed would read the whole file as one
MAX_FIELD_CHARACTERS = 1 << 24


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


def with_header(path: Source, rows: Iterable[tuple[int, Sequence[object]]], choose: Choose) -> Iterator[Row]:
    """Yield the chosen columns of rows, the first of which names all of them."""
    lines = iter(rows)
    header = next(lines, None)
    if header is None:
        raise InputError(f"{label(path)} is empty; its first line must name the columns")
    columns = [str(name) for name in header[1]]
    places = [columns.index(name) for name in choose(columns)]
    for number, fields in lines:
        if len(fields) != len(columns):
            if list(fields) == [""]:
                continue  # a blank line can't be a row of several columns
            yield number, Broken(f"{len(fields)} fields, but the header has {len(columns)} columns")
        else:
            yield number, [fields[place] for place in places]


def json_object(line: str) -> Object:
    """Parse a line of JSON; None for a blank one, which is not a row."""
    if not line or line.isspace():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        if line.strip() != "[":
            return Broken(f"not JSON ({error}); repair or drop this line")
        row = []  # a list that goes on over many lines
    if isinstance(row, list):
        return Broken(
            f'expected an object like {{"text": "..."}}, not {line:.40}; a file that is one list is read with '
            "--format json, or as .json without it"
        )
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
