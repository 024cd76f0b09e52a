"""The rows of a span, block by block; a row that can't be used is put aside with its reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from munjang.data.tables import Broken, format_of, json_values
from munjang.scale.places import located, shown
from munjang.scale.spans import Choice, Span, is_cut
from munjang.scale.whole import not_utf8, object_of, rows_from_start

MAX_ID_BYTES = 2048  # what every engine that these files are loaded into takes


@dataclass(frozen=True)
class Bad:
    """A row without a vector: where it stands and why."""

    place: int
    reason: str


@dataclass
class Block:
    """Good rows and bad ones; ids are numbers of rows, or what the column of ids holds."""

    name: str
    ids: list[Any] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)

    def put(self, place: int, number: int, values: Sequence[Any] | Broken) -> None:
        """A row; the values are its text and, where there is a column for it, its id."""
        reason = values.reason if isinstance(values, Broken) else _reason(values)
        if reason is not None:
            self.bad.append(Bad(place, reason))
            return
        assert not isinstance(values, Broken)
        self.texts.append(values[0])
        self.ids.append(values[1] if len(values) > 1 else number)
        self.places.append(place)


def _reason(values: Sequence[Any]) -> str | None:
    if not isinstance(values[0], str):
        return f"the text is {_told(values[0])}, not a text"
    if len(values) == 1:
        return None
    row_id = values[1]
    if not isinstance(row_id, (str, int)) or isinstance(row_id, bool):
        return f"the id is {_told(row_id)}, neither a text nor a whole number"
    if isinstance(row_id, int):
        return None if -(2**63) <= row_id < 2**63 else f"the id {row_id} has more than 64 bits"
    if not row_id or "\0" in row_id:
        return "the id is an empty text" if not row_id else "the id holds a zero character"
    try:
        size = len(row_id.encode())
    except UnicodeEncodeError:
        return "the id holds half a character (a lone surrogate)"
    return None if size <= MAX_ID_BYTES else f"the id has {size:,} bytes; at most {MAX_ID_BYTES:,} are taken"


def _told(value: Any) -> str:
    return "null" if value is None else f"{value!r:.40} ({type(value).__name__})"


def read_blocks(span: Span, address: str, choice: Choice, block_rows: int, first_row: int) -> Iterator[Block]:
    """The blocks of a span in order; `first_row` is the number of the file's first row among all inputs."""
    rows = _rows(span, address, choice)
    number = first_row + span.first_row
    for name in span.blocks(block_rows):
        block = Block(name)
        for place, values in islice(rows, block_rows):
            if values is not None:
                block.put(place, number, values)
            number += 1
        yield block


Values = tuple[int, Sequence[Any] | Broken | None]  # None: a blank line, which is no row but has a number


def _rows(span: Span, address: str, choice: Choice) -> Iterator[Values]:
    kind = format_of(shown(address), choice.format)
    if not is_cut(address, choice.format):
        return iter(rows_from_start(address, lambda there: choice.columns(shown(address), there), choice.format))
    return _groups(span, address) if kind == "parquet" else _lines(span, address, kind)


def _groups(span: Span, address: str) -> Iterator[Values]:
    from pyarrow.parquet import ParquetFile

    filesystem, path = located(address)
    with filesystem.open_input_file(path) as raw, ParquetFile(raw) as file:
        place = span.first_line
        batches = file.iter_batches(4096, row_groups=list(range(span.start, span.end)), columns=list(span.columns))
        for batch in batches:
            columns = [_values(batch.column(name)) for name in span.columns]
            for values in zip(*columns, strict=True):
                broken = next((value for value in values if isinstance(value, Broken)), None)
                yield place, broken or values
                place += 1


def _values(column: Any) -> list[Any]:
    """A column's values one by one where one of them is no UTF-8, which writers of Parquet need not check."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return Broken(f"not UTF-8 (byte 0x{error.object[error.start]:02x} at position {error.start})")


def _lines(span: Span, address: str, kind: str) -> Iterator[Values]:
    filesystem, path = located(address)
    with filesystem.open_input_file(path) as file:
        file.seek(span.start)
        data = bytes(file.read(span.end - span.start))
    if not span.start:
        data = data.removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for place, line in enumerate(lines, span.first_line + 1):
        line = line.removesuffix(b"\r")
        text = line.decode("utf-8", "surrogateescape")
        if kind == "txt":
            yield place, not_utf8(text) or [text]
        else:
            row = object_of(text)
            yield place, json_values(row, span.columns) if isinstance(row, dict) else row
