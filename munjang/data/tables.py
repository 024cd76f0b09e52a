"""Texts from tables, streamed: .txt .csv .tsv .json .jsonl .parquet, compressed or not, or standard input."""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from munjang.data.columns import choose_pair, choose_text
from munjang.data.files import COMPRESSIONS, STDIN, label, read_lines
from munjang.data.published import PUBLISHED, shape_of
from munjang.data.rows import (
    Broken,
    Choose,
    Row,
    Source,
    csv_rows,
    json_object,
    json_rows,
    json_values,
    with_header,
)
from munjang.errors import InputError, MissingExtra, unknown

SUFFIXES = {f".{name}": name for name in ("txt", "csv", "tsv", "json", "jsonl", "parquet")} | {".ndjson": "jsonl"}
NUMBERED_FROM_0 = ("parquet", "json", "klue-sts", "squad")  # rows that are no lines


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
    """Return the key of `READERS` or `PUBLISHED` for this path: as given, else by its head, else by its suffix.

    Standard input is one text a line.
    """
    if format is not None:
        if format not in READERS:
            raise unknown("format", format, READERS)
        if format == "parquet" and os.fspath(path) == STDIN:
            raise InputError("Parquet can't be read from standard input; give the file's name")
        # KLUE's and KorQuAD's are JSON, as is said; what they hold is known beside
        return (shape_of(path) if format == "json" else None) or format
    if os.fspath(path) == STDIN:
        return "txt"
    published = shape_of(path)
    if published is not None:
        return published
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
    name = format_of(path, format)
    if name in PUBLISHED:
        return with_header(path, PUBLISHED[name].read(path), choose)
    return READERS[name](path, choose)


def place(path: Source, where: int, format: str | None = None) -> str:
    """Return the name of a row in errors."""
    unit = "row (from 0)" if format_of(path, format) in NUMBERED_FROM_0 else "line"
    return f"{label(path)}, {unit} {where}"


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


def _read_jsonl(path: Source, choose: Choose) -> Iterator[Row]:
    return json_rows(read_lines(path), choose)


def _read_json(path: Source, choose: Choose) -> Iterator[Row]:
    """Read a list of objects, alone or as the only list of an object; objects inside them become columns `a.b`.

    A .json that has an object a line is read as .jsonl.
    """
    lines = list(read_lines(path))
    try:
        whole = json.loads("\n".join(line for _, line in lines) or "[]")
    except (ValueError, RecursionError) as error:
        first = next((json_object(line) for _, line in lines if line.strip()), None)
        if isinstance(first, dict):
            yield from json_rows(lines, choose)
            return
        raise InputError(f"{label(path)} is not valid JSON: {error}") from None
    lists = [value for value in whole.values() if isinstance(value, list)] if isinstance(whole, dict) else [whole]
    if isinstance(whole, dict) and not lists:
        lists = [[whole]]
    if len(lists) != 1 or not all(isinstance(item, dict) for item in lists[0]):
        raise InputError(f'{label(path)} should be a list of objects, such as [{{"text": "..."}}, ...]')
    names: list[str] = []
    for number, item in enumerate(map(_flat, lists[0])):
        names = names or choose(list(item))
        yield number, json_values(item, names)


def _flat(item: dict[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in item.items():
        flat |= {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
    return flat


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
    "json": _read_json,
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}
