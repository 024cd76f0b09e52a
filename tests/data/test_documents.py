import gzip
import json
from pathlib import Path

import pytest

from munjang.data.documents import Document, Reading, read_documents
from munjang.errors import InputError


def test_a_text_file_is_one_document(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("\ufeff# 제목\n\n둘째 줄", encoding="utf-8")
    (tmp_path / "blank.txt").write_text(" \n")
    found = list(read_documents([str(tmp_path)]))
    assert found == [Document("# 제목\n\n둘째 줄", str(note), {"source": str(note)})]


def test_lines_as_documents(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n")
    assert [each.text for each in read_documents([str(path)], Reading(is_lines=True))] == ["one", "two"]


def test_rows_with_ids_and_metadata(tmp_path: Path) -> None:
    table = tmp_path / "rows.tsv"
    table.write_text("id\ttext\tyear\tlang\n7\ta cat\t2001\ten\n8\t고양이\t\tko\n")
    found = list(read_documents([str(table)], Reading(kinds={"year": "int"})))
    assert found == [
        Document("a cat", "7", {"year": 2001, "lang": "en"}),
        Document("고양이", "8", {"lang": "ko"}),
    ]
    some = list(read_documents([str(table)], Reading(fields=["lang"])))
    assert [each.metadata for each in some] == [{"lang": "en"}, {"lang": "ko"}]


def test_types_of_jsonl_stay(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    row = {"text": "a", "n": 3, "share": 0.5, "is_new": True, "none": None}
    with gzip.open(path, "wt") as file:
        file.write(json.dumps(row))
    (found,) = read_documents([str(path)])
    assert found.metadata == {"n": 3, "share": 0.5, "is_new": True}
    assert found.id is None


def test_bad_rows(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("text,year\na,soon\n")
    with pytest.raises(InputError, match="line 2: 'year' is 'soon', not int"):
        list(read_documents([str(table)], Reading(kinds={"year": "int"})))
    with pytest.raises(InputError, match="type of a field"):
        list(read_documents([str(table)], Reading(kinds={"year": "date"})))
    with pytest.raises(InputError, match="no column 'key'"):
        list(read_documents([str(table)], Reading(id_column="key")))
    lists = tmp_path / "rows.jsonl"
    lists.write_text('{"text": "a", "tags": ["x"]}')
    with pytest.raises(InputError, match="'tags' is a list"):
        list(read_documents([str(lists)]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no texts"):
        list(read_documents([str(tmp_path / "empty")]))
