"""Ray Data's own checkpoints beside ours: rows that are computed again after `kill -9`, and files that readers see.

python -m benchmarks.ray_checkpoint --out benchmarks/results/NAME.json
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

ROWS, BLOCK, KILL_AFTER, BLOCK_S = 1200, 20, 15, 0.3


class Slow:
    """Stands in for a model: says which ids it got, and takes its time."""

    def __init__(self, log: str) -> None:
        self.log = Path(log) / str(os.getpid())

    def __call__(self, table: pa.Table) -> pa.Table:
        ids = table.column("id").to_pylist()
        with self.log.open("a") as file:
            file.write("".join(f"{each}\n" for each in ids))
        time.sleep(BLOCK_S * len(ids) / BLOCK)
        return table


def native(folder: str) -> None:
    """Ray's way: a checkpoint of ids for everything that is written."""
    import ray
    from ray.data.checkpoint import CheckpointConfig

    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.checkpoint_config = CheckpointConfig(
        id_column="id", checkpoint_path=f"{folder}/checkpoint", delete_checkpoint_on_success=False
    )
    data = ray.data.read_parquet(f"{folder}/in").map_batches(
        Slow,
        fn_constructor_args=(f"{folder}/log",),
        batch_size=BLOCK,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=0.5,
    )
    data.write_parquet(f"{folder}/out")


def computed(folder: Path) -> list[int]:
    return [int(line) for path in (folder / "log").iterdir() for line in path.read_text().split()]


def ids_in(folder: Path) -> list[int]:
    found = []
    for path in folder.rglob("*.parquet"):
        try:
            found += parquet.read_table(path, columns=["id"]).column("id").to_pylist()
        except (pa.ArrowInvalid, OSError):
            continue  # half a file
    return found


def start(folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "benchmarks.ray_checkpoint", "--native", str(folder), "--out", "-"]
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(command, stdout=errors, stderr=errors)


def measure(num_files: int) -> dict[str, Any]:
    """Kill the driver after some blocks, start again, count."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("in", "log", "out", "checkpoint"):
            (folder / part).mkdir()
        each = ROWS // num_files
        for number in range(num_files):
            ids = list(range(number * each, (number + 1) * each))
            table = pa.table({"id": ids, "text": [f"row {row_id}" for row_id in ids]})
            parquet.write_table(table, folder / f"in/{number:03d}.parquet")
        process = start(folder)
        while len(computed(folder)) < KILL_AFTER * BLOCK and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(8)
        before = len(computed(folder))
        committed = set(ids_in_checkpoint(folder))
        visible = ids_in(folder / "out")
        if start(folder).wait(400):
            raise RuntimeError((folder / "errors").read_text()[-2000:])
        after = computed(folder)
        written = ids_in(folder / "out")
    return {
        "input_files": num_files,
        "rows_computed_before_the_kill": before,
        "rows_committed_at_the_kill": len(committed),
        "rows_visible_but_not_committed": len(set(visible) - committed),
        "rows_computed_twice": len(after) - len(set(after)),
        "blocks_computed_twice": (len(after) - len(set(after))) / BLOCK,
        "every_row_once_at_the_end": sorted(written) == list(range(ROWS)),
    }


def ids_in_checkpoint(folder: Path) -> list[int]:
    found: list[int] = []
    for path in (folder / "checkpoint").glob("*.parquet"):
        if ".pending" not in path.name:
            found += parquet.read_table(path).column("id").to_pylist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--native")
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    if given.native:
        native(given.native)
        return
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "python -m benchmarks.ray_checkpoint",
        "what": f"{ROWS} rows, blocks of {BLOCK}, two workers, driver killed after {KILL_AFTER} blocks",
        "ours": "at most one block a worker: tests/scale/test_cluster.py",
        "ray_checkpoint_config": [measure(60), measure(2)],
    }
    Path(given.out).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    from benchmarks import ray_checkpoint  # under a name that workers can import

    ray_checkpoint.main()
