"""Read files that can only be read from the beginning; a row that is not valid UTF-8 is a bad row, not an error."""

import re
from collections.abc import Iterator

from munjang.data.files import read_lines
from munjang.data.rows import Broken, Choose, Object, Row, csv_rows, json_object, json_rows, with_header
from munjang.data.tables import format_of, read_rows

STRAY_BYTE = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of a byte that is not UTF-8


def rows_from_start(path: str, choose: Choose, format: str | None = None) -> Iterator[Row]:
    """Read rows like `read_rows`, but continue after a line that is not valid UTF-8."""
    kind = format_of(path, format)
    if kind not in ("txt", "csv", "tsv", "jsonl"):
        return read_rows(path, choose, format)
    if kind == "jsonl":
        return json_rows(_lines(path), choose, object_of)
    if kind == "txt":
        choose(["text"])
        return ((number, not_utf8(line) or [line]) for number, line in _lines(path))
    lines = _lines(path)
    fields = csv_rows(path, lines) if kind == "csv" else ((number, line.split("\t")) for number, line in lines)
    return map(_sound, with_header(path, fields, choose))


def not_utf8(text: str) -> Broken | None:
    """Return the first invalid byte of a text decoded with surrogateescape; None if there is none."""
    stray = STRAY_BYTE.search(text)
    if stray is None:
        return None
    position = len(text[: stray.start()].encode("utf-8", "surrogatepass"))
    return Broken(f"not UTF-8 (byte 0x{ord(stray[0]) - 0xDC00:02x} at position {position})")


def object_of(line: str) -> Object:
    """Parse a line of JSON decoded with surrogateescape; return None for a blank line, which is not a row."""
    return not_utf8(line) or json_object(line)


def _sound(row: Row) -> Row:
    number, values = row
    if isinstance(values, Broken):
        return row
    return number, next(filter(None, (not_utf8(value) for value in values if isinstance(value, str))), values)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    return read_lines(path, "surrogateescape")
