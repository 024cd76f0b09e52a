"""Rows of files that can only be read from their beginning; a row that is not UTF-8 is a bad one, not the end."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from munjang.data.files import read_lines
from munjang.data.tables import Broken, Choose, Row, csv_rows, format_of, read_rows, with_header

STRAY = re.compile("[\udc80-\udcff]")  # what Python's surrogateescape makes of a byte that is not UTF-8


def rows_from_start(path: str, choose: Choose, format: str | None = None) -> Iterator[Row]:
    """As `read_rows`, which ends at a line that is not UTF-8."""
    kind = format_of(path, format)
    if kind == "parquet":
        return read_rows(path, choose, format)
    if kind == "jsonl":
        return _objects(path, choose)
    if kind == "txt":
        choose(["text"])
        return ((number, not_utf8(line) or [line]) for number, line in _lines(path))
    lines = _lines(path)
    fields = csv_rows(path, lines) if kind == "csv" else ((number, line.split("\t")) for number, line in lines)
    return map(_sound, with_header(path, fields, choose))


def not_utf8(text: str) -> Broken | None:
    """What is wrong with a text that was decoded with its stray bytes; None: nothing."""
    found = STRAY.search(text)
    if found is None:
        return None
    position = len(text[: found.start()].encode("utf-8", "surrogatepass"))
    return Broken(f"not UTF-8 (byte 0x{ord(found[0]) - 0xDC00:02x} at position {position})")


def object_of(line: str, columns: Sequence[str]) -> list[Any] | Broken | None:
    """The values of a line of JSON; None for a blank one, which is no row."""
    if not line or line.isspace():
        return None
    row = _parsed(line)
    if isinstance(row, Broken):
        return row
    missing = [name for name in columns if name not in row]
    if missing:
        return Broken(f"no {missing[0]!r}; it has {', '.join(row) or 'nothing'}"[:300])
    return [row[name] for name in columns]


def _parsed(line: str) -> dict[str, Any] | Broken:
    if stray := not_utf8(line):
        return stray
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Broken(f"not JSON ({error})")
    return row if isinstance(row, dict) else Broken(f"not an object with columns, but {line:.40}")


def _objects(path: str, choose: Choose) -> Iterator[Row]:
    """The first line that is an object says what the columns are."""
    columns: list[str] = []
    for number, line in _lines(path):
        if not columns and isinstance(first := _parsed(line), dict):
            columns = choose(list(first))
        values = object_of(line, columns)
        if values is not None:
            yield number, values


def _sound(row: Row) -> Row:
    number, values = row
    if isinstance(values, Broken):
        return row
    return number, next(filter(None, (not_utf8(value) for value in values if isinstance(value, str))), values)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    return read_lines(path, "surrogateescape")
