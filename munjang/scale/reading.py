"""Read the rows of a shard, block by block; unusable rows are set aside with the reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from munjang.data.rows import Broken, json_values
from munjang.data.tables import format_of
from munjang.scale.addresses import located, shown
from munjang.scale.sequential import not_utf8, object_of, rows_from_start
from munjang.scale.shards import Choice, Shard, is_cut

MAX_ID_BYTES = 2048  # accepted by every engine that loads these files


@dataclass(frozen=True)
class BadRow:
    """A row without a vector: its line or row number, and the reason."""

    place: int
    reason: str


@dataclass
class Block:
    """The good and bad rows of a block; ids are row numbers, or the values of the id column."""

    name: str
    ids: list[Any] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def put(self, place: int, number: int, values: Sequence[Any] | Broken) -> None:
        """Add a row; `values` are its text and, if there is an id column, its id."""
        reason = values.reason if isinstance(values, Broken) else _reason(values)
        if reason is not None:
            self.bad.append(BadRow(place, reason))
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


def read_blocks(shard: Shard, address: str, choice: Choice, block_rows: int, first_row: int) -> Iterator[Block]:
    """Yield the blocks of a shard in order; `first_row` is the number of the file's first row among all inputs."""
    rows = _rows(shard, address, choice)
    number = first_row + shard.first_row
    for name in shard.blocks(block_rows):
        block = Block(name)
        for place, values in islice(rows, block_rows):
            if values is not None:
                block.put(place, number, values)
            number += 1
        yield block


Values = tuple[int, Sequence[Any] | Broken | None]  # None: a blank line, which has a number but is not a row


def _rows(shard: Shard, address: str, choice: Choice) -> Iterator[Values]:
    kind = format_of(shown(address), choice.format)
    if not is_cut(address, choice.format):
        return iter(rows_from_start(address, lambda there: choice.columns(shown(address), there), choice.format))
    return _groups(shard, address) if kind == "parquet" else _lines(shard, address, kind)


def _groups(shard: Shard, address: str) -> Iterator[Values]:
    from pyarrow.parquet import ParquetFile

    filesystem, path = located(address)
    with filesystem.open_input_file(path) as raw, ParquetFile(raw) as file:
        place = shard.first_line
        batches = file.iter_batches(4096, row_groups=list(range(shard.start, shard.end)), columns=list(shard.columns))
        for batch in batches:
            columns = [_values(batch.column(name)) for name in shard.columns]
            for values in zip(*columns, strict=True):
                broken = next((value for value in values if isinstance(value, Broken)), None)
                yield place, broken or values
                place += 1


def _values(column: Any) -> list[Any]:
    """Return a column's values, one by one if one is not valid UTF-8, which Parquet writers need not check."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return Broken(f"not UTF-8 (byte 0x{error.object[error.start]:02x} at position {error.start})")


def _lines(shard: Shard, address: str, kind: str) -> Iterator[Values]:
    filesystem, path = located(address)
    with filesystem.open_input_file(path) as file:
        file.seek(shard.start)
        data = bytes(file.read(shard.end - shard.start))
    if not shard.start:
        data = data.removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for place, line in enumerate(lines, shard.first_line + 1):
        line = line.removesuffix(b"\r")
        text = line.decode("utf-8", "surrogateescape")
        if kind == "txt":
            yield place, not_utf8(text) or [text]
        else:
            row = object_of(text)
            yield place, json_values(row, shard.columns) if isinstance(row, dict) else row
