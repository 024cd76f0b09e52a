"""Vectors to disk, streamed: .npy, .parquet (id, vector, text) and .jsonl.    N rows, D dimension.

Parquet gives every whole number at least four bytes, so vectors of bytes are columns of fixed-size binary there.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

DTYPE_KEY = b"munjang.dtype"  # of a column of bytes, in the metadata of its field
FLOAT_FORMATS = {"float32": ".9g", "float16": ".5g"}  # as many as bring the same bits back


@dataclass(frozen=True)
class VectorBlock:
    """Some consecutive rows; `texts` only where they are kept."""

    vectors: NDArray[Any]
    texts: list[str] | None = None


# The file, one block after another (at least one, maybe of no rows), and how many rows there are in all.
Write: TypeAlias = Callable[[BinaryIO, Iterator[VectorBlock], int], None]


def write_npy(file: BinaryIO, blocks: Iterator[VectorBlock], num_rows: int) -> None:
    """Write the same bytes as `np.save` of all rows at once, without texts.

    Not `np.save`: on a full disk its `tofile` reports "4096 requested and 512 written" without the reason.
    """
    first = next(blocks)
    shape = (num_rows, *first.vectors.shape[1:])
    description = np.lib.format.dtype_to_descr(first.vectors.dtype)
    header = {"descr": description, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.write(np.ascontiguousarray(first.vectors).data)
    for block in blocks:
        file.write(np.ascontiguousarray(block.vectors).data)


def write_parquet(file: BinaryIO, blocks: Iterator[VectorBlock], num_rows: int) -> None:
    """Write columns id (the row's number), vector (see `column_of`) and, where kept, text; a row group per block."""
    pa, parquet = require_pyarrow()
    first = next(blocks)
    kind, dtype = column_of(first.vectors[:0]).type, first.vectors.dtype
    vector = pa.field("vector", kind, metadata={DTYPE_KEY: dtype.name} if dtype.itemsize == 1 else None)
    fields = [pa.field("id", pa.int64()), vector]
    schema = pa.schema(fields if first.texts is None else [*fields, pa.field("text", pa.string())])
    start = 0
    # Vectors hardly repeat: a dictionary of their values only costs time.
    with parquet.ParquetWriter(file, schema, use_dictionary=False) as writer:
        for block in _chain(first, blocks):
            rows = len(block.vectors)
            columns = [
                pa.array(np.arange(start, start + rows)),
                column_of(block.vectors),
                *([] if block.texts is None else [pa.array(map(encodable, block.texts), pa.string())]),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            start += rows


def column_of(vectors_ND: NDArray[Any]) -> "pa.Array":
    """Make a column: floats as lists of fixed size, one-byte components as the bytes of a row."""
    pa, _ = require_pyarrow()
    rows = np.ascontiguousarray(vectors_ND)
    if rows.dtype.itemsize == 1:
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(rows)])
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])


def matrix_of(table: "pa.Table", dtype: str | None = None) -> NDArray[Any]:
    """Return the vectors of a table, [N, D]; `dtype` is that of bytes, where their column doesn't say it itself.

    `matrix_of(pyarrow.parquet.read_table("vectors.parquet"))`
    """
    pa, _ = require_pyarrow()
    column = table.column("vector").combine_chunks()
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_fixed_size_binary(array.type):  # floats, and whole numbers in files of older versions
        flat: NDArray[Any] = array.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(array), array.type.list_size)
    stored = (table.schema.field("vector").metadata or {}).get(DTYPE_KEY, b"").decode() or dtype
    if stored is None:
        raise InputError("The vectors are bytes, and their column doesn't say of which type; give dtype, such as int8.")
    width = array.type.byte_width
    start = array.offset * width
    data = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * width]
    return data.view(stored).reshape(len(array), width)


def write_jsonl(file: BinaryIO, blocks: Iterator[VectorBlock], num_rows: int) -> None:
    """Write one object a line: {"id": 0, "vector": [...], "text": "..."}."""
    row = 0
    for block in blocks:
        show = f"{{:{FLOAT_FORMATS.get(block.vectors.dtype.name, 'd')}}}".format
        for place, vector in enumerate(block.vectors.tolist()):
            text = (
                ""
                if block.texts is None
                else f', "text": {json.dumps(encodable(block.texts[place]), ensure_ascii=False)}'
            )
            file.write(f'{{"id": {row}, "vector": [{", ".join(map(show, vector))}]{text}}}\n'.encode())
            row += 1


def require_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow and pyarrow.parquet, or say how to install them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Writing Parquet") from None
    return pyarrow, pyarrow.parquet


def _chain(first: VectorBlock, rest: Iterator[VectorBlock]) -> Iterator[VectorBlock]:
    yield first
    yield from rest


def encodable(text: str) -> str:
    """Replace lone surrogates (JSON may hold them), which are not UTF-8, by U+FFFD, as the tokenizer does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


WRITERS: dict[str, Write] = {".npy": write_npy, ".parquet": write_parquet, ".jsonl": write_jsonl}
