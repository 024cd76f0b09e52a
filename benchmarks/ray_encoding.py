"""Encoding on Ray beside the plain pipeline; the stages around the model alone; one node beside two.

python -m benchmarks.ray_encoding stages TEXTS MODEL --out benchmarks/results/NAME.json
python -m benchmarks.ray_encoding overhead TEXTS MODEL --count 20000 --dtype int8 --out ...
python -m benchmarks.ray_encoding nodes TEXTS MODEL --count 4000 --out ...
python -m benchmarks.ray_encoding loading TEXTS MODEL --count 20000 --out ...
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from munjang.bi_encoder import BiEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.scale.cluster import connected
from munjang.scale.command import Request, encode_on_ray
from munjang.scale.encode import encode, run_here
from munjang.scale.job import Job
from munjang.scale.reading import Block, read_blocks
from munjang.scale.shards import Choice, shards_of
from munjang.scale.worker import BlockSummary, Worker, table_of
from munjang.stores import open_store
from munjang.stores.arrow import Columns
from munjang.stores.base import Schema
from munjang.stores.memory.store import as_rows

ROUNDS = 3
DIMENSION = 384


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=ACTIONS)
    parser.add_argument("texts")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--block-rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--block-s", type=float, default=0.0, help="blocks sleep so long instead of computing")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    os.environ["BLOCK_S"] = str(given.block_s)  # nodes and workers inherit it
    texts = list(islice(read_texts(given.texts), given.count))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    shown = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in vars(given).items() if name in SHOWN)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "machine": processor(torch.device("cpu")),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "command": f"python -m benchmarks.ray_encoding {given.what} TEXTS MODEL {shown}",
        "model": Path(given.model).name,
        "texts": len(texts),
        **ACTIONS[given.what](texts, given),
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


SHOWN = ("count", "dtype", "block_rows", "block_s", "rounds")


def per_s(action: Callable[[], Any], count: int, rounds: int) -> float:
    """Rows for each second of this process's CPU time, the median; others use the machine too."""
    action()
    rates = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        rates.append(count / (time.process_time() - start))
    return float(np.median(rates))


def stages(texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """Measure the steps around the model, on one core each: reading, tokenizing, packing files, comparing."""
    torch.set_num_threads(1)
    model = BiEncoder.load(given.model, "cpu", threads=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        parquet.write_table(pa.table({"text": texts}), path, row_group_size=len(texts))

        def read() -> None:
            for shard in shards_of(0, str(path), Choice(), len(texts)):
                list(read_blocks(shard, str(path), Choice(), len(texts), 0))

        vectors = np.random.default_rng(0).standard_normal((len(texts), DIMENSION)).astype(np.float32)
        kinds = {
            "float32": vectors,
            "int8": (vectors * 40).clip(-127, 127).astype(np.int8),
            "binary": np.packbits(vectors > 0, axis=1),
        }
        block = Block("00000-000000", list(range(len(texts))), texts)
        job = Job(model=given.model, output=folder, files=(str(path),))

        def write(kind: str) -> None:
            table = table_of(block, kinds[kind], job)
            with (Path(folder) / "out.parquet").open("wb") as file:
                parquet.write_table(table, file, use_dictionary=False, compression="none", write_statistics=["id"])

        found = {"read_per_s": per_s(read, len(texts), given.rounds)}
        found["tokenize_per_s"] = per_s(lambda: model.tokenizer(texts), len(texts), given.rounds)
        for kind in kinds:
            found[f"write_{kind}_per_s"] = per_s(lambda kind=kind: write(kind), len(texts), given.rounds)
        query = vectors[0]
        scans = 20
        rows = per_s(lambda: [vectors @ query for _ in range(scans)], scans * len(texts), given.rounds)
        found["scan_gb_per_s"] = rows * 4 * DIMENSION / 1e9
    tokens = float(model.tokenizer(texts).lengths.mean())
    return {
        "tokens": round(tokens, 2),
        "dimension": DIMENSION,
        **{name: round(value, 3) for name, value in found.items()},
    }


class Timed(Worker):
    """Writes down the clock and its own CPU time after every block. BLOCK_S: blocks sleep instead of computing.

    Sleeping blocks show what handing out costs, whoever else uses the machine.
    """

    def compute(self, block: Block) -> tuple[Block, Any, int]:
        if not float(os.environ.get("BLOCK_S", "0")):
            return super().compute(block)
        time.sleep(float(os.environ["BLOCK_S"]))
        return block, np.zeros((len(block.texts), self.model.dimension), np.float32), 0

    def _write(self, *block: Any) -> BlockSummary:
        done = super()._write(*block)
        with (Path(self.job.output) / f"times-{os.getpid()}").open("a") as file:
            file.write(f"{time.time()} {time.process_time()} {done.rows}\n")
        return done


def steady(output: Path) -> dict[str, float]:
    """Rows a second by the clock and by the workers' CPU time, from the moment when all of them had a first block."""
    logs = [
        [tuple(map(float, line.split())) for line in path.read_text().splitlines()] for path in output.glob("times-*")
    ]
    start = max(log[0][0] for log in logs)
    end = max(log[-1][0] for log in logs)
    rows = cpu = 0.0
    for log in logs:
        before = [each for each in log if each[0] <= start]
        rows += sum(each[2] for each in log if each[0] > start)
        cpu += log[-1][1] - before[-1][1]
    found = {"rows": rows, "seconds": end - start, "rows_per_s": rows / (end - start), "rows_per_cpu_s": rows / cpu}
    return {
        **{name: round(value, 2) for name, value in found.items()},
        "start": start,
        "end": end,
        "cpu_s": round(cpu, 2),
    }


def request(source: Path, output: Path, given: argparse.Namespace, workers: int, threads: int) -> Request:
    same = {"inputs": [str(source)], "output": str(output), "model": given.model, "dtype": given.dtype, "quiet": True}
    return Request(**same, block_rows=given.block_rows, workers=workers, threads=threads, device="cpu")


def in_process(source: Path, output: Path, given: argparse.Namespace, threads: int) -> dict[str, float]:
    """Encode the blocks with one worker in a process without Ray."""
    arguments = (str(source), str(output), given.model, given.dtype, given.block_rows, threads)
    code = f"from benchmarks.ray_encoding import plain; plain(*{arguments})"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return steady(output)


def plain(source: str, output: str, model: str, dtype: str | None, block_rows: int, threads: int) -> None:
    job = Job(
        model=model, output=output, files=(source,), dtype=dtype, block_rows=block_rows, threads=threads, device="cpu"
    )
    encode(job, lambda job, shards: run_here(job, shards, Timed))


def ray_cpu_s() -> dict[str, float]:
    """CPU time of Ray's own processes and of this one, which drives them; workers are counted by themselves."""
    found = {"driver": time.process_time(), "ray": 0.0}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = status.read_text().rpartition(")")[2].split()
            command = status.with_name("cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        is_ray = any(name in command for name in ("raylet", "gcs_server", "dashboard", "log_monitor", "runtime_env"))
        if is_ray and "ray::" not in command:
            found["ray"] += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return found


def on_cluster(source: Path, output: Path, given: argparse.Namespace, workers: int, threads: int) -> dict[str, Any]:
    """On the cluster that is connected; what Ray's own processes took meanwhile, in shares of a core."""
    samples, ended = [(time.time(), ray_cpu_s())], threading.Event()

    def watch() -> None:
        while not ended.wait(2.0):  # looking at all processes takes time itself
            samples.append((time.time(), ray_cpu_s()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    encode_on_ray(request(source, output, given, workers, threads), Timed)
    ended.set()
    watcher.join()
    found: dict[str, Any] = steady(output)
    inside = [each for when, each in samples if found["start"] <= when <= found["end"]]
    spent = {f"{name}_cpu_s": round(inside[-1][name] - inside[0][name], 2) for name in inside[0]}
    all_cpu = found["cpu_s"] + sum(spent.values())
    found["driver_share"] = round(spent["driver_cpu_s"] / all_cpu, 3)
    found["rows_per_cpu_s_with_ray"] = round(found["rows"] / all_cpu, 2)
    return {**found, **spent, "seconds_with_start": round(samples[-1][0] - samples[0][0], 1)}


def overhead(texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """One worker of all cores on Ray, and the same blocks in a process of their own, by turns, after start-up."""
    import ray

    cores = os.cpu_count() or 1
    rounds = []
    with files(texts) as (source, folder), connected("local"):
        assert ray.is_initialized()
        for number in range(given.rounds):
            one = in_process(source, folder / f"plain-{number}", given, cores)
            other = on_cluster(source, folder / f"ray-{number}", given, 1, cores)
            rounds.append({"plain": one, "ray": other})
    ratios = {
        name: [round(one["plain"][name] / one["ray"][name], 3) for one in rounds]
        for name in ("rows_per_s", "rows_per_cpu_s")
    }
    ratios["cpu_with_ray"] = [
        round(one["plain"]["rows_per_cpu_s"] / one["ray"]["rows_per_cpu_s_with_ray"], 3) for one in rounds
    ]
    medians = {f"median_{name}": float(np.median(values)) for name, values in ratios.items()}
    return {"plain_over_ray": {**ratios, **medians}, "rounds": rounds}


def nodes(texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """One node of one core, then two, by turns; the head has none for workers."""
    from ray.cluster_utils import Cluster

    rounds = []
    with files(texts) as (source, folder):
        for number in range(given.rounds):
            found = {}
            for count in (1, 2):
                cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
                for _ in range(count):
                    cluster.add_node(num_cpus=1)
                cluster.wait_for_nodes()
                with connected(cluster.address):
                    found[str(count)] = on_cluster(source, folder / f"{number}-{count}", given, count, 1)
                cluster.shutdown()
            rounds.append(found)
    ratios = [round(one["2"]["rows_per_s"] / one["1"]["rows_per_s"], 3) for one in rounds]
    by_cpu = [round(2 * one["2"]["rows_per_cpu_s"] / one["1"]["rows_per_cpu_s"], 3) for one in rounds]
    medians = {"median_by_clock": float(np.median(ratios)), "median_by_cpu": float(np.median(by_cpu))}
    return {"two_over_one": {"by_clock": ratios, "by_cpu": by_cpu, **medians}, "rounds": rounds}


def loading(texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """Columns and rows into every engine, by turns: this process's CPU time and the clock, a store for each turn."""
    from tests.stores.servers import postgres_place

    vectors = np.random.default_rng(0).standard_normal((len(texts), DIMENSION)).astype(np.float32)
    ids = pa.array([str(number) for number in range(len(texts))])
    columns = Columns(ids, pa.array(texts), vectors, None, pa.array([""] * len(texts)))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        places = {"lance": f"{folder}/lance", "postgres": postgres_place(), "milvus-lite": f"milvus-lite:{folder}/m"}
        for engine, place in places.items():
            rounds = []
            for number in range(given.rounds):
                one = {}
                for how in ("columns", "rows"):
                    store = open_store(place, Schema(DIMENSION), True, f"{how}{number}")
                    start, cpu = time.time(), time.process_time()
                    if how == "columns":
                        store.load(columns, True)
                    else:
                        store.add(as_rows(columns))
                    one[how] = {"seconds": time.time() - start, "cpu_s": time.process_time() - cpu}
                    assert store.count() == len(texts)
                    store.close()
                rounds.append(one)
            found[engine] = {
                name: round(float(np.median([one["rows"][name] / one["columns"][name] for one in rounds])), 2)
                for name in ("seconds", "cpu_s")
            } | {"rows_per_cpu_s": round(len(texts) / float(np.median([one["columns"]["cpu_s"] for one in rounds])))}
    return {"rows_over_columns": found}


@contextmanager
def files(texts: list[str]) -> Iterator[tuple[Path, Path]]:
    """The texts in a file, and a folder for outputs."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "texts.txt"
        source.write_text("".join(f"{' '.join(text.split())}\n" for text in texts))
        yield source, Path(name)


ACTIONS = {"stages": stages, "overhead": overhead, "nodes": nodes, "loading": loading}

if __name__ == "__main__":
    from benchmarks import ray_encoding  # under a name that workers can import

    ray_encoding.main()
