"""Vectors on disk: the same numbers come back from every format."""

import io
import json
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from munjang.data.vectors import WRITERS, VectorBlock, column_of, matrix_of, require_pyarrow
from munjang.errors import InputError, MissingExtra

DTYPES = ["float32", "float16", "int8", "uint8"]


def vectors_of(dtype: str) -> np.ndarray:
    generator = np.random.default_rng(0)
    if dtype.startswith("float"):
        return (generator.standard_normal((7, 8)) * 10.0 ** generator.integers(-4, 4, (7, 8))).astype(dtype)
    return generator.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (7, 8), dtype, endpoint=True)


def written(suffix: str, vectors: np.ndarray, texts: list[str] | None = None) -> bytes:
    """In parts of three rows."""

    def parts() -> Iterator[VectorBlock]:
        for start in range(0, max(len(vectors), 1), 3):
            yield VectorBlock(vectors[start : start + 3], None if texts is None else texts[start : start + 3])

    file = io.BytesIO()
    WRITERS[suffix](file, parts(), len(vectors))
    return file.getvalue()


def read_back(suffix: str, content: bytes, dtype: str) -> np.ndarray:
    if suffix == ".npy":
        return np.load(io.BytesIO(content))
    if suffix == ".jsonl":
        return np.array([json.loads(line)["vector"] for line in content.splitlines()], dtype)
    return matrix_of(pyarrow.parquet.read_table(io.BytesIO(content)))


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_come_back(suffix: str, dtype: str) -> None:
    vectors = vectors_of(dtype)
    found = read_back(suffix, written(suffix, vectors), dtype)
    assert found.dtype == vectors.dtype
    np.testing.assert_array_equal(found, vectors)


@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_is_what_numpy_writes(dtype: str) -> None:
    file = io.BytesIO()
    np.save(file, vectors_of(dtype))
    assert written(".npy", vectors_of(dtype)) == file.getvalue()


@pytest.mark.parametrize("suffix", WRITERS)
def test_no_rows(suffix: str) -> None:
    content = written(suffix, np.zeros((0, 8), np.float32))
    assert len(read_back(suffix, content, "float32")) == 0
    assert read_back(".parquet", written(".parquet", np.zeros((0, 8), np.int8)), "int8").shape == (0, 8)


def test_bytes_take_a_byte_in_parquet() -> None:
    vectors = np.random.default_rng(0).integers(-128, 128, (1000, 100), np.int8)
    file = io.BytesIO()
    WRITERS[".parquet"](file, iter([VectorBlock(vectors)]), 1000)
    assert len(file.getvalue()) < 1.2 * vectors.size  # lists took 4; ids and heads are the rest


@pytest.mark.parametrize("dtype", DTYPES)
def test_lists_of_older_files_are_read(dtype: str) -> None:
    vectors = vectors_of(dtype)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 8)
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"vector": column}), file)
    np.testing.assert_array_equal(read_back(".parquet", file.getvalue(), dtype), vectors)


def test_bytes_of_an_unknown_type() -> None:
    vectors = vectors_of("uint8")
    table = pa.table({"vector": pa.chunked_array([column_of(vectors[:3]), column_of(vectors)[3:]])})
    np.testing.assert_array_equal(matrix_of(table, "uint8"), vectors)
    with pytest.raises(InputError, match="doesn't say of which type"):
        matrix_of(table)


def test_texts_and_ids() -> None:
    texts = ["a", "", "한글", 'quote "', "line\nbreak", "lone \ud800 surrogate", "pair \ud83d\ude00"]
    readable = [*texts[:5], "lone \ufffd surrogate", "pair \U0001f600"]
    lines = [json.loads(line) for line in written(".jsonl", vectors_of("float32"), texts).decode().split("\n")[:-1]]
    assert [line["text"] for line in lines] == readable
    assert [line["id"] for line in lines] == list(range(7))
    table = pyarrow.parquet.read_table(io.BytesIO(written(".parquet", vectors_of("float32"), texts)))
    assert table.column_names == ["id", "vector", "text"]
    assert table["text"].to_pylist() == readable
    assert table["id"].to_pylist() == list(range(7))


def test_missing_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'munjang\[parquet\]'"):
        require_pyarrow()
