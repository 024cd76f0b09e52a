import json
from pathlib import Path

from munjang.scale.reading import Block, read_blocks
from munjang.scale.spans import Choice, spans_of

PLAIN = Choice()


def read(path: Path, choice: Choice = PLAIN, block_rows: int = 100) -> Block:
    (span,) = spans_of(0, str(path), choice, block_rows)
    (block,) = read_blocks(span, str(path), choice, block_rows, 1000)
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
    for place, word in {2: "not JSON", 4: "not an object", 5: "no 'text'", 6: "null", 8: "not UTF-8"}.items():
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
