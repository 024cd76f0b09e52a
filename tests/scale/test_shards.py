import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from munjang.errors import InputError
from munjang.scale import shards
from munjang.scale.manifest import Manifest
from munjang.scale.reading import read_blocks
from munjang.scale.shards import Choice, Shard, block_name, files_of, id_kind_of, is_cut, numbers_of, shards_of
from munjang.scale.worker import BlockSummary

PLAIN = Choice()


def rows_of(path: Path, block_rows: int, choice: Choice = PLAIN) -> list[tuple[str, list, list]]:
    """Name, ids and texts of each block, through the reader."""
    cut = shards_of(0, str(path), choice, block_rows)
    found = [block for shard in cut for block in read_blocks(shard, str(path), choice, block_rows, 0)]
    return [(block.name, block.ids, block.texts) for block in found]


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("read_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_lines_are_cut_at_every_nth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, read_bytes: int, count: int
) -> None:
    monkeypatch.setattr(shards, "READ_BYTES", read_bytes)
    lines = [f"줄 {number}" for number in range(count)]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    found = rows_of(path, 3)
    assert [text for _, _, texts in found for text in texts] == lines
    assert [row_id for _, ids, _ in found for row_id in ids] == list(range(count))
    assert [len(texts) for _, _, texts in found] == [min(3, count - start) for start in range(0, count, 3)]
    assert [name for name, _, _ in found] == [f"00000-{number:06d}" for number in range(len(found))]


def test_no_lines_are_no_spans(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    assert shards_of(0, str(tmp_path / "a.txt"), Choice(), 3) == []


@pytest.mark.parametrize("group", [1, 2, 5, 100])
def test_parquet_is_cut_at_row_groups(tmp_path: Path, group: int) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"row {number}" for number in range(11)]
    parquet.write_table(pa.table({"text": texts, "number": range(11)}), path, row_group_size=group)
    found = rows_of(path, 4)
    assert [text for _, _, some in found for text in some] == texts
    assert [row_id for _, ids, _ in found for row_id in ids] == list(range(11))
    assert all(len(some) <= 4 for _, _, some in found)
    names = [name for name, _, _ in found]
    assert names == [f"00000-{number:06d}" for number in range(len(names))]
    assert [name for shard in shards_of(0, str(path), Choice(), 4) for name in shard.blocks(4)] == names


def test_what_is_compressed_is_one_span_of_several_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"text": str(number)}) + "\n" for number in range(5))
    (shard,) = shards_of(0, str(path), Choice(), 2)
    assert shard.blocks(2) == ["00000-000000", "00000-000001", "00000-000002"]
    assert [texts for _, _, texts in rows_of(path, 2)] == [["0", "1"], ["2", "3"], ["4"]]


def test_the_column_of_json_lines_is_chosen_by_the_first_object(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('broken\n\n[1]\n{"id": "x", "content": "a", "n": 1}\n')
    (shard,) = shards_of(0, str(path), Choice(), 9)
    assert shard.columns == ("content",)
    (shard,) = shards_of(0, str(path), Choice(id_column="id"), 9)
    assert shard.columns == ("content", "id")
    with pytest.raises(InputError, match="no column 'key'"):
        shards_of(0, str(path), Choice(id_column="key"), 9)


def test_ids_are_numbers_where_every_file_has_numbers(tmp_path: Path) -> None:
    numbers, texts = tmp_path / "a.parquet", tmp_path / "b.parquet"
    parquet.write_table(pa.table({"text": ["a"], "id": [1]}), numbers)
    parquet.write_table(pa.table({"text": ["a"], "id": ["x"]}), texts)
    choice = Choice(id_column="id")
    assert id_kind_of([str(numbers)], choice) == "int"
    assert id_kind_of([str(numbers), str(texts)], choice) == "text"
    assert id_kind_of([str(texts)], Choice()) == "int"


def test_files_of_folders_by_name(tmp_path: Path) -> None:
    for name in ("b.txt", "a.jsonl.gz", "notes.md"):
        (tmp_path / name).write_text("")
    assert files_of([str(tmp_path)], None) == [str(tmp_path / "a.jsonl.gz"), str(tmp_path / "b.txt")]
    with pytest.raises(InputError, match="doesn't exist"):
        files_of([str(tmp_path / "none.txt")], None)
    with pytest.raises(InputError, match="object store"):
        files_of([f"file://{tmp_path / 'a.jsonl.gz'}"], None)


def test_a_span_without_rows_still_has_a_block() -> None:
    assert Shard(2, 5, 0, 0, 0, 0).blocks(10) == ["00002-000005"]


def test_a_compressed_file_is_known_before_the_settings_of_its_address() -> None:
    assert is_cut("s3://bucket/a.jsonl?region=eu", None)
    assert not is_cut("s3://bucket/a.jsonl.gz?region=eu", None)
    assert not is_cut("s3://bucket/a.gz?region=eu", "txt")


def test_blocks_of_many_inputs_are_ordered_by_number() -> None:
    names = [block_name(99_999, 1_000_000), block_name(100_000, 2)]
    assert list(map(numbers_of, names)) == [(99_999, 1_000_000), (100_000, 2)]
    blocks = {name: BlockSummary(name, "k", 1, 0, 0) for name in reversed(names)}
    assert Manifest("k", {}, "f", 3, blocks).files() == [f"blocks/{name}.parquet" for name in names]
