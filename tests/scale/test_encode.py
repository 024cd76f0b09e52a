"""Whole runs in this process; what Ray adds is in test_cluster.py."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError, MunjangError
from munjang.scale.encode import encode, prepared, run_here
from munjang.scale.job import Job, settings
from munjang.scale.manifest import Manifest, complete_manifest, read_manifest, tables, vectors_of
from munjang.scale.reading import BadRow, Block
from munjang.scale.shards import Choice, Shard
from munjang.scale.worker import BlockSummary, Worker

TEXTS = [f"a quick fox jumps over {number} dogs" for number in range(10)]


def job(model: Path, folder: Path, *files: Path, **options: Any) -> Job:
    return Job(
        model=str(model), output=str(folder), files=tuple(map(str, files)), threads=1, **{"block_rows": 4, **options}
    )


def lines(path: Path, texts: Sequence[str] = TEXTS) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def read(folder: Path, manifest: Manifest | None = None) -> pa.Table:
    return pa.concat_tables(
        table.replace_schema_metadata(None) for table in tables(str(folder), manifest or complete_manifest(str(folder)))
    )


def vectors(table: pa.Table, precision: str = "float32") -> np.ndarray:
    return vectors_of(table, precision)


class Killed(BaseException):
    """What no handler stops."""


class Counting(Worker):
    """Counts what is computed, and dies in the block of this number."""

    computed: ClassVar[list[str]] = []
    die_at = ""

    def compute(self, block: Any) -> Any:
        self.computed.append(block.name)
        if block.name == self.die_at:
            raise Killed
        return super().compute(block)


@pytest.fixture
def counting() -> type[Counting]:
    return type("Here", (Counting,), {"computed": [], "die_at": ""})


def on(worker: type[Worker]) -> Any:
    def engine(job: Job, shards: Sequence[Shard]) -> Iterator[BlockSummary]:
        return run_here(job, shards, worker)

    return engine


def test_vectors_are_those_of_encode(tmp_path: Path, tiny_bert: Path) -> None:
    first, second = lines(tmp_path / "a.txt"), tmp_path / "b.parquet"
    parquet.write_table(pa.table({"text": TEXTS[:5][::-1]}), second)
    manifest = encode(job(tiny_bert, tmp_path / "out", first, second))
    found = read(tmp_path / "out")
    assert found.column("id").to_pylist() == list(range(15))
    wanted = BiEncoder.load(tiny_bert, "cpu").encode([*TEXTS, *TEXTS[:5][::-1]])
    assert np.abs(vectors(found) - wanted).max() < 1e-5
    assert (manifest.num_rows, manifest.num_bad, manifest.is_complete) == (15, 0, True)
    assert manifest.fingerprint == BiEncoder.load(tiny_bert, "cpu").fingerprint
    assert manifest.files() == [
        f"blocks/0000{file}-{number:06d}.parquet" for file, number in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    ]


@pytest.mark.parametrize(
    ("precision", "kind"),
    [
        ("float16", "fixed_size_list<element: halffloat>[32]"),
        ("ubinary", "fixed_size_binary[4]"),
        ("binary", "fixed_size_binary[4]"),
    ],
)
def test_precisions_hashes_and_texts(tmp_path: Path, tiny_bert: Path, precision: str, kind: str) -> None:
    options = {"precision": precision, "text_hash": True, "keep_text": True}
    encode(job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt", ["a", "b", "a"]), **options))
    found = read(tmp_path / "out")
    assert found.schema.names == ["id", "vector", "text_hash", "text"]
    assert str(found.schema.field("vector").type) == kind
    hashes = found.column("text_hash").to_pylist()
    assert hashes[0] == hashes[2] != hashes[1]
    assert found.column("text").to_pylist() == ["a", "b", "a"]
    wanted = BiEncoder.load(tiny_bert, "cpu").encode(["a", "b", "a"], precision=precision)
    assert vectors(found, precision).dtype == wanted.dtype
    assert np.array_equal(vectors(found, precision), wanted)
    assert np.array_equal(vectors(found.slice(1), precision), wanted[1:])


def test_files_are_in_the_order_of_a_column_of_ids(tmp_path: Path, tiny_bert: Path) -> None:
    path = tmp_path / "a.jsonl"
    ids = ["d", "a", "c", "b", "a", 3, "z", "y"]
    path.write_text("".join(json.dumps({"text": str(row_id), "id": row_id}) + "\n" for row_id in ids))
    manifest = encode(job(tiny_bert, tmp_path / "out", path, choice=Choice(id_column="id"), keep_text=True))
    found = [table.column("id").to_pylist() for table in tables(str(tmp_path / "out"), manifest)]
    assert found == [["a", "b", "c", "d"], ["3", "a", "y", "z"]]
    assert read(tmp_path / "out").column("text").to_pylist() == ["a", "b", "c", "d", "3", "a", "y", "z"]


def test_bad_rows_go_aside_and_the_job_goes_on(tmp_path: Path, tiny_bert: Path) -> None:
    path = tmp_path / "a.jsonl"
    long = "fox " * 5000
    rows = ['{"text": "one", "id": 1}', "{", json.dumps({"text": long, "id": 2}), '{"text": "again", "id": 1}']
    path.write_text("\n".join(rows))
    manifest = encode(job(tiny_bert, tmp_path / "out", path, choice=Choice(id_column="id"), long="error"))
    assert (manifest.num_rows, manifest.num_bad) == (1, 3)
    bad = [json.loads(line) for line in (tmp_path / "out/bad/00000-000000.jsonl").read_text().splitlines()]
    assert [row["place"] for row in bad] == [2, 3, 4]
    assert [row["file"] for row in bad] == [str(path)] * 3
    assert "not JSON" in bad[0]["reason"]
    assert "tokens" in bad[1]["reason"]
    assert "twice" in bad[2]["reason"]
    manifest = encode(job(tiny_bert, tmp_path / "cut", path, choice=Choice(id_column="id")))
    assert manifest.num_cut == 1


@pytest.mark.parametrize("die_at", ["00000-000000", "00000-000002", "00001-000001"])
def test_a_killed_run_goes_on_and_computes_one_block_twice(
    tmp_path: Path, tiny_bert: Path, counting: type[Counting], die_at: str
) -> None:
    files = [lines(tmp_path / "a.txt"), lines(tmp_path / "b.txt")]
    counting.die_at = die_at
    with pytest.raises(Killed):
        encode(job(tiny_bert, tmp_path / "out", *files), on(counting))
    before = read_manifest(str(tmp_path / "out"))
    assert before is not None
    assert not before.is_complete
    with pytest.raises(InputError, match="not finished"):
        complete_manifest(str(tmp_path / "out"))
    (tmp_path / "out/blocks/00001-000002.parquet.0a.tmp").write_bytes(b"half")  # what a killed write leaves
    counting.die_at = ""
    encode(job(tiny_bert, tmp_path / "out", *files), on(counting))
    assert read(tmp_path / "out").column("id").to_pylist() == list(range(20))
    assert sorted(counting.computed) == sorted([*set(counting.computed), die_at])
    assert len(counting.computed) == 7
    assert not list((tmp_path / "out/blocks").glob("*.tmp"))
    encode(job(tiny_bert, tmp_path / "out", *files), on(counting))
    assert len(counting.computed) == 7  # nothing is left to do


def test_a_block_that_was_removed_is_made_again(tmp_path: Path, tiny_bert: Path, counting: type[Counting]) -> None:
    given = job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt"))
    encode(given, on(counting))
    (tmp_path / "out/blocks/00000-000001.parquet").unlink()
    encode(given, on(counting))
    assert counting.computed[3:] == ["00000-000001"]


def test_a_block_that_was_damaged_is_made_again(tmp_path: Path, tiny_bert: Path, counting: type[Counting]) -> None:
    given = job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt"))
    encode(given, on(counting))
    before = read(tmp_path / "out")
    short, long = (tmp_path / f"out/blocks/00000-00000{number}.parquet" for number in (0, 2))
    short.write_bytes(short.read_bytes()[:-100])
    long.write_bytes(b"PAR1 damaged" + long.read_bytes())  # its end, by which Parquet is known, is sound
    encode(given, on(counting))
    assert counting.computed[3:] == ["00000-000000", "00000-000002"]
    assert read(tmp_path / "out").equals(before)


def test_another_job_does_not_mix_with_it(tmp_path: Path, tiny_bert: Path, counting: type[Counting]) -> None:
    path = lines(tmp_path / "a.txt")
    encode(job(tiny_bert, tmp_path / "out", path))
    with pytest.raises(InputError, match=r"precision was 'float32', is now 'float16'.*--restart"):
        encode(job(tiny_bert, tmp_path / "out", path, precision="float16"))
    lines(path, TEXTS[:3])
    with pytest.raises(InputError, match="inputs was"):
        encode(job(tiny_bert, tmp_path / "out", path))
    encode(job(tiny_bert, tmp_path / "out", path), on(counting), restart=True)
    assert read(tmp_path / "out").column("id").to_pylist() == [0, 1, 2]
    assert sorted(os.listdir(tmp_path / "out/blocks")) == ["00000-000000.parquet"]


def test_readers_see_what_the_manifest_lists_only(tmp_path: Path, tiny_bert: Path) -> None:
    encode(job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt")))
    (tmp_path / "out/blocks/99999-000000.parquet").write_bytes(b"not listed")
    assert read(tmp_path / "out").num_rows == 10


def test_an_input_that_changes_meanwhile_is_told(tmp_path: Path, tiny_bert: Path) -> None:
    path = lines(tmp_path / "a.txt")

    def engine(job: Job, shards: Sequence[Shard]) -> Iterator[BlockSummary]:
        yield from run_here(job, shards)
        lines(path, TEXTS[:-1])

    with pytest.raises(InputError, match="changed while it was read"):
        encode(job(tiny_bert, tmp_path / "out", path), engine)


def test_blocks_that_an_engine_forgets_are_told(tmp_path: Path, tiny_bert: Path) -> None:
    def engine(job: Job, shards: Sequence[Shard]) -> Iterator[BlockSummary]:
        return run_here(job, shards[:-1])

    with pytest.raises(MunjangError, match="1 blocks were not finished, 00000-000002 first"):
        encode(job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt")), engine)


def test_a_model_that_differs_on_a_node_is_refused(tmp_path: Path, tiny_bert: Path) -> None:
    with pytest.raises(MunjangError, match="differs from the driver's"):
        Worker(job(tiny_bert, tmp_path / "out", fingerprint="0" * 64))


def test_a_setting_that_the_model_refuses_is_told_before_anything_is_read(tmp_path: Path, tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="truncate_dim"):
        encode(job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt"), truncate_dim=10_000))


def test_secrets_are_not_written_down(tiny_bert: Path) -> None:
    address = "s3://AKIA:hunter2@bucket/a.parquet?secret_key=hunter2"
    given = Job(model=address, output=address, files=(address,))
    written = json.dumps(settings(given, {address: [1, 2]}))
    assert "hunter2" not in written
    assert "AKIA" not in written
    assert "s3://bucket/a.parquet" in written


def test_nothing_to_encode_is_a_complete_run(tmp_path: Path, tiny_bert: Path) -> None:
    manifest = encode(job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt", [])))
    assert (manifest.num_rows, manifest.is_complete, manifest.files()) == (0, True, [])


def test_a_block_that_takes_its_worker_down_again_and_again_ends_the_run(tmp_path: Path, tiny_bert: Path) -> None:
    given = job(tiny_bert, tmp_path / "out", lines(tmp_path / "a.txt"))

    def engine(job: Job, shards: Sequence[Shard]) -> Iterator[BlockSummary]:
        for number in range(5):
            (tmp_path / f"out/begun/00000-000001-{number}").touch()
        return run_here(job, shards)

    with pytest.raises(MunjangError, match="Block 00000-000001 killed its worker 5 times"):
        encode(given, engine)
    encode(given)  # started by hand again, it is given another chance
    assert not list((tmp_path / "out/begun").iterdir())


def test_the_hundred_thousandth_input_is_named_with_its_bad_rows(tmp_path: Path, tiny_bert: Path) -> None:
    files = [f"/{number}.txt" for number in range(100_002)]
    given = job(tiny_bert, tmp_path / "out", *map(Path, files))
    for part in ("bad", "blocks", "begun"):
        (tmp_path / "out" / part).mkdir(parents=True)
    for number in range(5):
        (tmp_path / f"out/begun/100001-0000000-{number}").touch()  # of another block, whose name begins alike
    Worker(given)._make(Block("100001-000000", [0], ["a fox"], [1], [BadRow(2, "no text")]))
    assert json.loads((tmp_path / "out/bad/100001-000000.jsonl").read_text())["file"] == "/100001.txt"


def test_what_a_device_computes_in_belongs_to_the_job(tmp_path: Path, tiny_bert: Path) -> None:
    path = lines(tmp_path / "a.txt")
    manifest = encode(job(tiny_bert, tmp_path / "out", path, device="cpu"))
    assert manifest.settings["dtype"] == "float32"
    with pytest.raises(InputError, match="dtype was 'float32', is now 'float16'"):
        encode(job(tiny_bert, tmp_path / "out", path, device="cuda"))
    same = prepared(job(tiny_bert, tmp_path / "out", path, device="cuda", dtype="float32"))[0]
    assert (same.key, same.dtype) == (manifest.key, "float32")
