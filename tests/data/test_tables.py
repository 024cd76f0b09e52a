"""Every format gives the same texts; every bad row names its file, its line and the way out."""

import bz2
import csv
import gzip
import io
import json
import lzma
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from munjang.data.tables import READERS, format_of, read_pairs, read_texts
from munjang.errors import InputError, MissingExtra

TEXTS = [
    "A cat sits.",
    "고양이가 앉아 있다.",
    "",
    'quotes "and", commas',
    "  spaces  ",
    "U+2028 \u2028 and form feed \f stay",
    "끝",
]


def csv_bytes(header: list[str], rows: list[list[str]]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


def parquet_bytes(columns: dict[str, list[object]]) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


WRITTEN: dict[str, bytes] = {
    "txt": "\n".join(TEXTS).encode(),
    "csv": csv_bytes(["id", "text"], [[str(row), text] for row, text in enumerate(TEXTS)]),
    "tsv": "".join(f"{left}\t{right}\n" for left, right in [("id", "text"), *enumerate(TEXTS)]).encode(),
    "jsonl": "".join(json.dumps({"id": row, "text": text}) + "\n" for row, text in enumerate(TEXTS)).encode(),
    "json": json.dumps([{"id": row, "text": text} for row, text in enumerate(TEXTS)], indent=1).encode(),
    "parquet": parquet_bytes({"id": list(range(len(TEXTS))), "text": list(TEXTS)}),
}


def texts_of(path: Path, content: bytes, **options: str) -> list[str]:
    path.write_bytes(content)
    return list(read_texts(path, **options))


def test_every_format_is_tried() -> None:
    assert WRITTEN.keys() == READERS.keys()


@pytest.mark.parametrize("format", READERS)
def test_formats(format: str, tmp_path: Path) -> None:
    assert texts_of(tmp_path / f"a.{format}", WRITTEN[format]) == TEXTS
    assert texts_of(tmp_path / "a.data", WRITTEN[format], format=format) == TEXTS


@pytest.mark.parametrize("format", sorted(READERS.keys() - {"parquet"}))
@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)])
def test_compressed(format: str, suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    packed = compress(WRITTEN[format])
    assert texts_of(tmp_path / f"a.{format}.{suffix}", packed) == TEXTS
    with pytest.raises(InputError, match="is damaged after line"):
        texts_of(tmp_path / f"cut.{format}.{suffix}", packed[:-10])


@pytest.mark.parametrize("format", sorted(READERS.keys() - {"parquet"}))
def test_byte_order_mark_and_crlf(format: str, tmp_path: Path) -> None:
    windows = b"\xef\xbb\xbf" + WRITTEN[format].replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert texts_of(tmp_path / f"a.{format}", windows) == TEXTS


@pytest.mark.parametrize("format", sorted(READERS.keys() - {"parquet"}))
def test_stdin(format: str) -> None:
    code = (
        f"import json; from munjang.data.tables import *; print(json.dumps(list(read_texts('-', format={format!r}))))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=WRITTEN[format], capture_output=True, check=True)
    assert json.loads(done.stdout) == TEXTS


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),  # the end of the line is no row
        (b"a\n\n", ["a", ""]),  # an empty line is
        (b"\n\na", ["", "", "a"]),
        (b"a\rb\n", ["a\rb"]),
    ],
)
def test_txt_rows(content: bytes, texts: list[str], tmp_path: Path) -> None:
    assert texts_of(tmp_path / "a.txt", content) == texts


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        (
            "a.csv",
            b'text\n"two\r\nlines"\n\n""\n',
            ["two\nlines", ""],
        ),  # quoted: one row; blank: no row; "": an empty text
        ("a.csv", b"text\n", []),
        ("a.csv", ("text\n" + "x" * 1_000_000).encode(), ["x" * 1_000_000]),  # the csv module stops at 131,072
        ("a.csv", b"only\nx\n", ["x"]),
        ("a.csv", b"Sentence ,id\nx,1\n", ["x"]),
        ("a.csv", "번호,문장\n1,안녕\n".encode(), ["안녕"]),
        ("a.tsv", b'text\n"not a quote\n\n', ['"not a quote', ""]),  # one column: an empty line is an empty text
        ("a.tsv", b"id\ttext\n1\tx\n\n", ["x"]),  # two columns: it can't be a row
        ("a.jsonl", b'{"text": "x"}\n\n  \n{"text": "\\ud800"}\n', ["x", "\ud800"]),
        ("a.jsonl", b"", []),
        ("a.ndjson", b'{"anything": "x"}', ["x"]),
        ("a.json", b'{"data": [{"text": "x"}], "version": 1}', ["x"]),  # the only list of an object
        ("a.json", b'{"text": "x"}\n{"text": "y"}\n', ["x", "y"]),  # an object a line
        ("a.json", b'{"text": "x"}', ["x"]),
        ("a.json", b'[{"text": "x", "labels": {"a": 1}}]', ["x"]),
    ],
)
def test_rows(name: str, content: bytes, texts: list[str], tmp_path: Path) -> None:
    assert texts_of(tmp_path / name, content) == texts


BAD = {
    "two candidates": (
        "a.csv",
        b"query,passage\nx,y\n",
        r"a\.csv: which column\? several .*'query', 'passage'.*--column",
    ),
    "no candidate": ("a.csv", b"a,b\nx,y\n", r"which column\? none .*'a', 'b'.*--column"),
    "no header": ("a.csv", b"a whole sentence\nanother\n", "which column.*'a whole sentence'"),
    "twice": ("a.csv", b"text,text\nx,y\n", r"which column\? several"),
    "no lines": ("a.csv", b"", "is empty; its first line must name the columns"),
    "ragged": ("a.csv", b"id,text\n1,x\n2,y,z\n", r"a\.csv, line 3: 3 fields, but the header has 2 columns"),
    "after two lines": ("a.csv", b'id,text\n1,"x\ny"\n2\n', r"line 4: 1 fields"),
    "open quote": ("a.csv", b'id,text\n1,x\n2,"y\n', r"line 3: .*quote"),
    "loose quote": ("a.csv", b'id,text\n1,"x"y\n', r"line 2: .*quote"),
    "ragged tabs": ("a.tsv", b"id\ttext\n1\n", "line 2: 1 fields"),
    "null": (
        "a.jsonl",
        b'{"text": "x"}\n{"text": null}\n',
        r"a\.jsonl, line 2: 'text' is null, not a text; drop or fill",
    ),
    "number": ("a.jsonl", b'{"text": 5}\n', r"line 1: 'text' is 5 \(int\)"),
    "missing": ("a.jsonl", b'{"text": "x"}\n{"title": "y"}\n', "line 2: no 'text'; it has title"),
    "broken": ("a.jsonl", b'{"text": "x"}\n{"text": "x\n', "line 2: not JSON .*repair or drop"),
    "deep": ("a.jsonl", b"[" * 100_000, "line 1: not JSON"),
    "list": ("a.jsonl", b'["x"]\n', "line 1: expected an object like"),
    "list in lines": ("a.jsonl", b'[{"text": "x"}]', "one list is read with --format json"),
    "list over lines": ("a.jsonl", b'[\n  {"text": "x"}\n]', "line 1: .* one list is read with --format json"),
    "json of texts": ("a.json", b'["x"]', "should be a list of objects, such as"),
    "no json": ("a.json", b"text\nx\n", r"a\.json is not valid JSON"),
    "two lists": ("a.json", b'{"a": [], "b": []}', "should be a list of objects"),
    "null in json": ("a.json", b'[{"text": null}]', r"row \(from 0\) 0: 'text' is null"),
    "header that is a row": (
        *("a.csv", b"A girl styles her hair.,3.5\nx,y\n"),
        "first line looks like a row, not like names of columns",
    ),
    "cp949": (
        "a.txt",
        b"ok\n" + "안녕".encode("cp949"),
        r"a\.txt, line 2: not UTF-8 \(byte 0xbe at position 0\).*CP949",
    ),
    "utf-16": ("a.txt", "안녕".encode("utf-16"), "line 1: not UTF-8 .*iconv -f UTF-16"),
    "cp949 table": ("a.csv", b"text\n" + "안녕".encode("cp949"), "line 2: not UTF-8"),
    "no parquet": ("a.parquet", b"text\nx\n", "can't be read as Parquet"),
    "null in parquet": ("a.parquet", parquet_bytes({"text": ["x", None]}), r"row \(from 0\) 1: 'text' is null"),
    "bytes in parquet": ("a.parquet", parquet_bytes({"text": [b"x"]}), r"row \(from 0\) 0: 'text' is b'x' \(bytes\)"),
    "columns of parquet": ("a.parquet", parquet_bytes({"a": ["x"], "b": ["y"]}), "which column.*'a', 'b'"),
    "packed parquet": ("a.parquet.gz", b"", "compressed inside"),
    "suffix": ("a.doc", b"", r"a\.doc: the name doesn't tell the format; give --format .*txt, csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows(case: str, tmp_path: Path) -> None:
    name, content, message = BAD[case]
    with pytest.raises(InputError, match=message):
        texts_of(tmp_path / name, content)


def test_column(tmp_path: Path) -> None:
    assert texts_of(tmp_path / "a.csv", b"query,passage\nx,y\n", column="passage") == ["y"]
    assert texts_of(tmp_path / "a.parquet", parquet_bytes({"a": ["x"], "b.c": ["y"]}), column="b.c") == ["y"]
    with pytest.raises(InputError, match=r"a\.csv has no column 'title'; its columns are 'query', 'passage'"):
        texts_of(tmp_path / "a.csv", b"query,passage\nx,y\n", column="title")
    with pytest.raises(InputError, match="has no column 'title'"):
        texts_of(tmp_path / "a.txt", b"x", column="title")
    with pytest.raises(InputError, match="more than one column 'text'"):
        texts_of(tmp_path / "a.csv", b"text,text\nx,y\n", column="text")


def test_pairs(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("score\tsentence2\tsentence1\n5\tb\ta\n", encoding="utf-8")
    assert list(read_pairs(path)) == [("a", "b")]
    assert list(read_pairs(path, ("sentence2", "score"))) == [("b", "5")]
    path.write_text("A first text\tand its pair\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"which two columns of 'A first text', 'and its pair'.*--columns"):
        list(read_pairs(path))


def test_unknown_format() -> None:
    with pytest.raises(InputError, match=r"Unknown format 'jsonn'.*Did you mean 'json'"):
        format_of("a.json", "jsonn")
    with pytest.raises(InputError, match="can't be read from standard input"):
        format_of("-", "parquet")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_texts(tmp_path / "none.txt"))


def test_missing_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'munjang\[parquet\]'"):
        texts_of(tmp_path / "a.parquet", WRITTEN["parquet"])


# Arrow's memory isn't Python's, and a list in .json is read at once
@pytest.mark.parametrize("format", sorted(READERS.keys() - {"parquet", "json"}))
def test_memory_is_flat(format: str, tmp_path: Path) -> None:
    header = {"csv": b"text\n", "tsv": b"text\n"}.get(format, b"")
    line = b'{"text": "%s"}\n' % (b"x" * 1000) if format == "jsonl" else b"x" * 1000 + b"\n"
    path = tmp_path / f"a.{format}"
    path.write_bytes(header + line * 5_000)
    tracemalloc.start()
    assert sum(1 for _ in read_texts(path)) == 5_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500_000  # of 5 MB
