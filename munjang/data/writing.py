"""Tables of texts to disk: .tsv .csv .jsonl .parquet, as `data/tables.py` reads them back."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from munjang.data.examples import Examples
from munjang.data.files import replacing
from munjang.data.vectors import encodable, require_pyarrow
from munjang.errors import InputError, unknown

Column: TypeAlias = Sequence[Any]  # texts or numbers
Write: TypeAlias = Callable[[BinaryIO, dict[str, Column]], None]
NOT_IN_TSV = ("\t", "\n", "\r")  # nothing is quoted there


def columns_of(examples: Examples) -> dict[str, Column]:
    """Return the columns of examples by name: their texts, then `label` and `score` where they have them."""
    names = examples.columns or tuple(f"text_{place}" for place in range(1, len(examples.texts) + 1))
    table: dict[str, Column] = dict(zip(names, examples.texts, strict=True))
    if examples.labels is not None:
        numbers: list[int] = examples.labels.tolist()
        table["label"] = [examples.label_names[number] for number in numbers] if examples.label_names else numbers
    if examples.scores is not None:
        table["score"] = examples.scores.tolist()
    return table


def write_table(path: Path, table: dict[str, Column]) -> None:
    """Write columns by the path's suffix; the file appears whole or not at all."""
    check_suffix(path)
    with replacing(path) as file:
        WRITERS[path.suffix](file, table)


def check_suffix(path: Path) -> None:
    """Refuse now what could not be written after hours of work."""
    if path.suffix not in WRITERS:
        raise unknown("suffix of the output", path.suffix, WRITERS)
    if path.suffix == ".parquet":
        require_pyarrow()
    check_file(path)


def check_file(path: Path) -> None:
    """Refuse a name that no file can have: one of a folder, or in a folder that is not there."""
    if not path.parent.is_dir():
        raise InputError(f"The folder {path.parent} doesn't exist; create it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")


def check_texts(path: Path, texts: Iterable[str]) -> None:
    """Refuse texts that a .tsv can't hold, before they are worked on."""
    if path.suffix == ".tsv":
        for text in texts:
            if any(mark in text for mark in NOT_IN_TSV):
                raise InputError(
                    f"A .tsv holds no tabs or line breaks, but {text!r:.80} has one; write .csv or .jsonl."
                )


def _write_tsv(file: BinaryIO, table: dict[str, Column]) -> None:
    lines = zip(*table.values(), strict=True)
    for row in (tuple(table), *lines):
        fields = [str(value) for value in _all_encodable(row)]
        check_texts(Path("a.tsv"), fields)
        file.write(("\t".join(fields) + "\n").encode())


def _write_csv(file: BinaryIO, table: dict[str, Column]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(_all_encodable(row) for row in zip(*table.values(), strict=True))
    text.detach()  # writes what is left; the file is closed by who opened it


def _write_jsonl(file: BinaryIO, table: dict[str, Column]) -> None:
    for row in zip(*table.values(), strict=True):
        values = dict(zip(table, _all_encodable(row), strict=True))
        file.write((json.dumps(values, ensure_ascii=False) + "\n").encode())


def _write_parquet(file: BinaryIO, table: dict[str, Column]) -> None:
    pa, parquet = require_pyarrow()
    # a column without rows is one of texts too
    columns = {
        name: pa.array(_all_encodable(column), None if column else pa.string()) for name, column in table.items()
    }
    parquet.write_table(pa.table(columns), file)


def _all_encodable(values: Iterable[Any]) -> list[Any]:
    return [encodable(value) if isinstance(value, str) else value for value in values]


WRITERS: dict[str, Write] = {
    ".tsv": _write_tsv,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}
