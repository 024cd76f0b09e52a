import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from munjang.errors import InputError
from munjang.scale import worker
from munjang.scale.encode import encode
from munjang.scale.job import Job
from munjang.scale.manifest import Manifest, complete_manifest, tables
from munjang.scale.ordering import rows_between, sort_all
from munjang.scale.shards import Choice


def encoded(folder: Path, model: Path, ids: list[object]) -> Manifest:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps({"text": f"fox {row_id}", "id": row_id}) + "\n" for row_id in ids))
    return encode(job(folder, model))


def job(folder: Path, model: Path) -> Job:
    files, choice = (str(folder / "a.jsonl"),), Choice(id_column="id")
    return Job(model=str(model), output=str(folder / "out"), files=files, block_rows=7, choice=choice)


def test_all_rows_in_one_order(tmp_path: Path, tiny_bert: Path) -> None:
    ids = [f"{number:03d}" for number in range(50)]
    random.Random(1).shuffle(ids)
    manifest = encoded(tmp_path, tiny_bert, ids)
    unordered = {row_id: vector for table in tables(str(tmp_path / "out"), manifest) for row_id, vector in rows(table)}
    sort_all(str(tmp_path / "out"), manifest)
    ordered = complete_manifest(str(tmp_path / "out"))
    found = [row for table in tables(str(tmp_path / "out"), ordered) for row in rows(table)]
    assert [row_id for row_id, _ in found] == sorted(ids)
    assert dict(found) == unordered
    sizes = [table.num_rows for table in tables(str(tmp_path / "out"), ordered)]
    assert len(sizes) == 8
    assert max(sizes) <= 10


def rows(table: object) -> list[tuple[str, list[float]]]:
    return list(zip(table.column("id").to_pylist(), table.column("vector").to_pylist(), strict=True))


def test_a_killed_order_goes_on_with_the_ranges_that_are_missing(tmp_path: Path, tiny_bert: Path) -> None:
    manifest = encoded(tmp_path, tiny_bert, [f"{number * 7 % 30:02d}" for number in range(30)])
    cut: list[str] = []

    def mapper(action: object, values: list[object]) -> object:
        for value in values:
            if hasattr(value, "low"):
                cut.append(value.name)
                if len(cut) == 3:
                    raise KeyboardInterrupt
            yield action(value)

    with pytest.raises(KeyboardInterrupt):
        sort_all(str(tmp_path / "out"), manifest, mapper)
    assert complete_manifest(str(tmp_path / "out")).sorted is None  # readers still use the blocks
    ordered = sort_all(str(tmp_path / "out"), manifest, mapper)
    assert len(cut) == len(ordered.files()) + 1  # only the one that was under way was cut twice
    found = [row_id for table in tables(str(tmp_path / "out"), ordered) for row_id in table.column("id").to_pylist()]
    assert found == [f"{number:02d}" for number in range(30)]


def test_an_id_that_two_blocks_hold_is_told(tmp_path: Path, tiny_bert: Path) -> None:
    manifest = encoded(tmp_path, tiny_bert, [*map(str, range(10)), "3"])
    with pytest.raises(InputError, match="'3' occurs twice"):
        sort_all(str(tmp_path / "out"), manifest)


def test_counted_rows_are_in_order_already(tmp_path: Path, tiny_bert: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\nb\nc\n")
    manifest = encode(Job(model=str(tiny_bert), output=str(tmp_path / "out"), files=(str(path),), block_rows=2))
    ordered = sort_all(str(tmp_path / "out"), manifest)
    assert ordered.files() == manifest.files()
    assert not (tmp_path / "out/sorted").exists()


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_an_order_that_lost_a_file_is_made_again(tmp_path: Path, tiny_bert: Path, damage: str) -> None:
    ids = [f"{number * 7 % 30:02d}" for number in range(30)]
    output = str(tmp_path / "out")
    ordered = sort_all(output, encoded(tmp_path, tiny_bert, ids))
    path = tmp_path / "out" / ordered.files()[1]
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:-9])
    given = job(tmp_path, tiny_bert)
    again = encode(given)
    assert again.sorted is None  # readers use the blocks, which are whole
    assert complete_manifest(output).files() == again.files()
    assert sort_all(output, again).files() == ordered.files()
    assert path.read_bytes() == whole
    assert encode(given) == ordered  # nothing was to be done


def test_a_range_holds_no_more_than_its_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    ids = [f"{number:05d}" for number in range(10_000)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 80_000, pa.float32()), 8)
    parquet.write_table(pa.table({"id": ids, "vector": vectors}), path, row_group_size=1000)
    found = rows_between(path, "00995", "01005")
    assert found.column("id").to_pylist() == ids[995:1005]
    assert found.get_total_buffer_size() < 2000  # 10 rows of 41 bytes and their padding, not 10,000
    assert rows_between(path, None, "00002").column("id").to_pylist() == ids[:2]
    assert rows_between(path, "09998", None).column("id").to_pylist() == ids[-2:]
    assert rows_between(path, None, None).num_rows == 10_000


def test_a_block_is_written_in_small_row_groups(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ROWS_PER_GROUP", 3)
    manifest = encoded(tmp_path, tiny_bert, ["b", "a", "d", "c", "e", "g", "f"])
    file = parquet.ParquetFile(tmp_path / "out" / manifest.files()[0])
    ends = [file.metadata.row_group(number).column(0).statistics.max for number in range(file.num_row_groups)]
    assert ends == ["c", "f", "g"]
