"""Vectors to disk, streamed: .npy, .parquet (id, vector, text) and .jsonl."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.errors import MissingExtra

DIGITS = {"float32": ".9g", "float16": ".5g"}  # as many as bring the same bits back


@dataclass(frozen=True)
class Part:
    """Some consecutive rows; `texts` only where they are kept."""

    vectors: NDArray[Any]
    texts: list[str] | None = None


# The file, one part after another (at least one, maybe of no rows), and how many rows there are in all.
Write: TypeAlias = Callable[[BinaryIO, Iterator[Part], int], None]


def write_npy(file: BinaryIO, parts: Iterator[Part], num_rows: int) -> None:
    """The same bytes as `np.save` of all rows at once; texts have no place here.

    Not `np.save`: on a full disk its `tofile` reports "4096 requested and 512 written" without the reason.
    """
    first = next(parts)
    shape = (num_rows, *first.vectors.shape[1:])
    description = np.lib.format.dtype_to_descr(first.vectors.dtype)
    header = {"descr": description, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.write(np.ascontiguousarray(first.vectors).data)
    for part in parts:
        file.write(np.ascontiguousarray(part.vectors).data)


def write_parquet(file: BinaryIO, parts: Iterator[Part], num_rows: int) -> None:
    """Columns id (the row's number), vector (a list of fixed size) and, where kept, text. A row group per part."""
    pa, parquet = require_pyarrow()
    first = next(parts)
    width = first.vectors.shape[1]
    fields = [("id", pa.int64()), ("vector", pa.list_(pa.from_numpy_dtype(first.vectors.dtype), width))]
    schema = pa.schema(fields if first.texts is None else [*fields, ("text", pa.string())])
    start = 0
    # Vectors hardly repeat: a dictionary of their values only costs time.
    with parquet.ParquetWriter(file, schema, use_dictionary=False) as writer:
        for part in _chain(first, parts):
            flat = pa.array(np.ascontiguousarray(part.vectors).reshape(-1))
            rows = len(part.vectors)
            columns = [
                pa.array(np.arange(start, start + rows)),
                pa.FixedSizeListArray.from_arrays(flat, width),
                *([] if part.texts is None else [pa.array(map(_encodable, part.texts), pa.string())]),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            start += rows


def write_jsonl(file: BinaryIO, parts: Iterator[Part], num_rows: int) -> None:
    """One object a line: {"id": 0, "vector": [...], "text": "..."}."""
    row = 0
    for part in parts:
        show = f"{{:{DIGITS.get(part.vectors.dtype.name, 'd')}}}".format
        for place, vector in enumerate(part.vectors.tolist()):
            text = (
                ""
                if part.texts is None
                else f', "text": {json.dumps(_encodable(part.texts[place]), ensure_ascii=False)}'
            )
            file.write(f'{{"id": {row}, "vector": [{", ".join(map(show, vector))}]{text}}}\n'.encode())
            row += 1


def require_pyarrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet, or the line that installs them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Writing Parquet") from None
    return pyarrow, pyarrow.parquet


def _chain(first: Part, rest: Iterator[Part]) -> Iterator[Part]:
    yield first
    yield from rest


def _encodable(text: str) -> str:
    """A lone surrogate (JSON may hold one) is no UTF-8; it becomes U+FFFD, as in the tokenizer."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


WRITERS: dict[str, Write] = {".npy": write_npy, ".parquet": write_parquet, ".jsonl": write_jsonl}
