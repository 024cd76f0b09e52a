import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from munjang.errors import InputError
from munjang.scale.reading import Block, read_blocks
from munjang.scale.shards import Choice, shards_of

PLAIN = Choice()


def read(path: Path, choice: Choice = PLAIN, block_rows: int = 100) -> Block:
    (shard,) = shards_of(0, str(path), choice, block_rows)
    (block,) = read_blocks(shard, str(path), choice, block_rows, 1000)
    return block


def test_bad_rows_have_a_place_and_a_reason_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        b'\xef\xbb\xbf{"text": "one", "id": 7}\r',
        b"{broken",
        b"",
        b'["text"]',
        b'{"id": 8}',
        b'{"text": null, "id": 9}',
        b'{"text": "two", "id": "b"}',
        b'{"text": "\xff", "id": 3}',
        b'{"text": "x", "id": 1.5}',
        b'{"text": "x", "id": ""}',
        b'{"text": "x", "id": true}',
        b'{"text": "x", "id": "\\ud800"}',
        json.dumps({"text": "x", "id": "가" * 700}).encode(),
        b'{"text": "x", "id": 9223372036854775808}',
    ]
    path.write_bytes(b"\n".join(lines))
    block = read(path, Choice(id_column="id"))
    assert (block.ids, block.texts, block.places) == ([7, "b"], ["one", "two"], [1, 7])
    reasons = {bad.place: bad.reason for bad in block.bad}
    assert list(reasons) == [2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14]
    for place, word in {2: "not JSON", 4: "expected an object", 5: "no 'text'", 6: "null", 8: "not UTF-8"}.items():
        assert word in reasons[place]
    for place, word in {9: "1.5 (float)", 10: "empty", 11: "True", 12: "surrogate", 13: "2,100", 14: "64 bits"}.items():
        assert word in reasons[place]


def test_rows_are_counted_through_blank_lines_and_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n\n{"text": "b"}\n')
    assert read(path).ids == [1000, 1002]


def test_tables_that_are_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\nx,1\ny\n")
    block = read(path, Choice(column="a"))
    assert block.texts == ["x"]
    assert [bad.reason for bad in block.bad] == ["1 fields, but the header has 2 columns"]


ROWS = {
    "a.jsonl.gz": [b'{"text": "one"}', b'{"text": "\xb0\xa1"}', b'{"text": "two"}'],
    "a.txt.gz": [b"one", b"\xb0\xa1", b"two"],
    "a.csv": [b"text,n", b"one,1", b'"\xb0\xa1",2', b"two,3"],
    "a.tsv": [b"text\tn", b"one\t1", b"\xb0\xa1\t2", b"two\t3"],
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_not_utf8_does_not_end_a_file_that_is_read_as_a_whole(tmp_path: Path, name: str) -> None:
    path, data = tmp_path / name, b"\n".join(ROWS[name])
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    block = read(path)
    assert (block.texts, block.ids) == (["one", "two"], [1000, 1002])
    (bad,) = block.bad
    assert bad.place == len(ROWS[name]) - 1
    position = 10 if "json" in name else 0
    assert bad.reason == f"not UTF-8 (byte 0xb0 at position {position})"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_text_of_parquet_that_is_not_utf8_is_a_bad_row(tmp_path: Path, kind: pa.DataType) -> None:
    raw = pa.array([b"one", b"a\xb0\xa1", b"two", None], pa.binary() if kind == pa.string() else pa.large_binary())
    parquet.write_table(pa.table({"text": raw.view(kind)}), tmp_path / "a.parquet")  # a view checks nothing
    block = read(tmp_path / "a.parquet")
    assert (block.texts, block.ids) == (["one", "two"], [1000, 1002])
    assert [(bad.place, bad.reason) for bad in block.bad] == [
        (1, "not UTF-8 (byte 0xb0 at position 1)"),
        (3, "the text is null, not a text"),
    ]


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n" * 1000)[:-20])
    with pytest.raises(InputError, match=r"a\.txt\.gz is damaged after line"):
        read(path)
