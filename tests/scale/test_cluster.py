"""Ray for real: one node, several, workers and drivers that are killed. Minutes: `make test-full`."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.errors import InputError, MunjangError
from munjang.scale.cluster import OpaqueJob, Pool, connected, map_on_ray, pool_for
from munjang.scale.command import Request, encode_on_ray
from munjang.scale.exact import search_exactly
from munjang.scale.job import Job
from munjang.scale.manifest import complete_manifest, read_manifest, tables
from tests.scale.run_encoding import Refusing

ROOT = Path(__file__).parents[2]
TEXTS = [f"a quick fox jumps over {number} lazy dogs" for number in range(600)]  # 30 blocks of 20


class Nodes:
    """A stand-in for Ray's list of nodes, to count workers without a cluster."""

    def __init__(self, *resources: dict[str, float]) -> None:
        self.resources = resources

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": each} for each in self.resources]


def test_a_worker_for_each_gpu_or_for_every_few_cores() -> None:
    assert pool_for(Nodes({"CPU": 2}), None, None, None) == Pool(1, 2)
    assert pool_for(Nodes({"CPU": 16}, {"CPU": 9}), None, None, None) == Pool(6, 4)
    assert pool_for(Nodes({"CPU": 16, "GPU": 8}, {"CPU": 2}), None, None, None) == Pool(8, 1, 1)
    assert pool_for(Nodes({"CPU": 64, "GPU": 4}, {"CPU": 128, "GPU": 8}), 2, None, "cuda") == Pool(2, 8, 1)
    assert pool_for(Nodes({"CPU": 16, "GPU": 8}), None, None, "cpu") == Pool(4, 4)
    assert pool_for(Nodes({"CPU": 2}), None, 1, None) == Pool(2, 1)
    assert pool_for(Nodes({"CPU": 8}), 3, 2, None) == Pool(3, 2)
    with pytest.raises(ValueError, match="No node has the 3 cores"):
        pool_for(Nodes({"CPU": 2}), None, 3, None)


class Doubled:
    """Twice a number; counts how often it is sent."""

    num_sent = 0

    def __call__(self, value: int) -> int:
        return 2 * value

    def __reduce__(self) -> tuple[type["Doubled"], tuple[()]]:
        Doubled.num_sent += 1
        return Doubled, ()


class Run:
    """A run of tests/scale/run_encoding.py and what its workers said."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model, self.log = folder, model, folder / "log"
        self.log.mkdir()
        self.source = folder / "texts.txt"
        self.source.write_text("".join(f"{text}\n" for text in TEXTS))
        self.output = folder / "out"

    def start(self, slow_s: float, address: str | None = None) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "SLOW_S": str(slow_s)}
        environment |= {"ENCODING_LOG": str(self.log), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        given = [str(self.model), str(self.source), str(self.output), *([address] if address else [])]
        command = [sys.executable, "-m", "tests.scale.run_encoding", *given]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def said(self, word: str) -> list[tuple[int, str]]:
        """Worker and block of every line that begins so."""
        found = []
        for path in self.log.iterdir():
            lines = [line.split() for line in path.read_text().splitlines()]
            found += [(int(path.name), line[1]) for line in lines if line[0] == word]
        return found

    def wait_for(self, count: int, process: "subprocess.Popen[str]", workers: int = 1) -> None:
        """Until so many blocks are written, and so many workers have begun."""
        until = time.monotonic() + 240
        while len(self.said("wrote")) < count or len({pid for pid, _ in self.said("compute")}) < workers:
            assert process.poll() is None, process.communicate()[0][-3000:]
            assert time.monotonic() < until, "the run does not get on"
            time.sleep(0.1)

    def finish(self, process: "subprocess.Popen[str]") -> None:
        output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output[-4000:]

    def check(self, num_lost: int) -> None:
        """Every id once, the vectors right, and at most `num_lost` blocks computed twice."""
        manifest = complete_manifest(str(self.output))
        table = pa.concat_tables(each.replace_schema_metadata(None) for each in tables(str(self.output), manifest))
        assert table.column("id").to_pylist() == list(range(len(TEXTS)))
        wanted = BiEncoder.load(self.model, "cpu").encode(TEXTS)
        assert np.abs(np.array(table.column("vector").to_pylist()) - wanted).max() < 1e-5
        computed = Counter(name for _, name in self.said("compute"))
        assert len(computed) == 30
        assert sum(computed.values()) - 30 <= num_lost, computed


@pytest.fixture
def run(tmp_path: Path, tiny_bert: Path) -> Run:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    return Run(tmp_path, tiny_bert)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_block(run: Run) -> None:
    process = run.start(slow_s=0.3)
    run.wait_for(4, process)
    worker = run.said("wrote")[-1][0]
    os.kill(worker, signal.SIGKILL)
    run.finish(process)
    run.check(num_lost=1)
    assert worker in {pid for pid, _ in run.said("compute")}
    assert len(list(run.log.iterdir())) == 3  # two workers, and the one that took its place


@pytest.mark.slow
def test_a_driver_that_is_killed_costs_a_block_of_each_worker(run: Run) -> None:
    process = run.start(slow_s=0.3)
    run.wait_for(6, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = read_manifest(str(run.output))
    assert before is not None
    assert not before.is_complete
    time.sleep(5)  # until Ray's own processes have noticed
    again = run.start(slow_s=0)
    run.finish(again)
    run.check(num_lost=2)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without cores for workers, and nodes of one core each, as separate Ray nodes."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.mark.slow
def test_two_nodes_share_the_work_and_one_may_go(run: Run, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ENCODING_LOG": run.log, "SLOW_S": 1.5, "PYTHONPATH": ROOT}.items():
        monkeypatch.setenv(name, str(value))  # nodes start their workers with our settings
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    process = run.start(slow_s=1.5, address=cluster.address)
    run.wait_for(4, process, workers=2)  # one of them may begin long after the other
    cluster.remove_node(nodes[0], allow_graceful=False)
    run.finish(process)
    run.check(num_lost=1)


@pytest.mark.slow
def test_the_command_sorts_and_exact_search_runs_on_ray(tmp_path: Path, tiny_bert: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    ids = [f"{number * 7 % 100:03d}" for number in range(100)]
    rows = [json.dumps({"text": TEXTS[int(row_id)], "id": row_id}) for row_id in ids] + ["{broken"]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    output = str(tmp_path / "out")
    command = ["encode", str(tmp_path / "a.jsonl"), "-o", output, "-m", str(tiny_bert), "--id-column", "id", "--sort"]
    assert main([*command, "--block-rows", "15", "--quiet", "--ray", "local"]) == 0
    manifest = complete_manifest(output)
    table = pa.concat_tables(tables(output, manifest))
    assert table.column("id").to_pylist() == sorted(ids)
    assert (manifest.num_rows, manifest.num_bad) == (100, 1)
    queries = BiEncoder.load(tiny_bert, "cpu").encode(TEXTS[:3])
    with connected("local"):
        found = search_exactly(output, queries, 5, mapper=partial(map_on_ray, ray))
    assert found == search_exactly(output, queries, 5)
    assert [each.ids[0] for each in found] == ["000", "001", "002"]


@pytest.mark.slow
def test_what_a_worker_refuses_reaches_the_caller(tmp_path: Path, tiny_bert: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]  # two: counted on the cluster
    for file in files:
        file.write_text("a\nb\n")
    request = Request(inputs=list(map(str, files)), output=str(tmp_path / "out"), model=str(tiny_bert), address="local")
    with pytest.raises(MunjangError, match=r"^no more of 's3://bucket/x'$"):
        encode_on_ray(request, Refusing)
    assert encode_on_ray(request).num_rows == 4


@pytest.mark.slow
def test_what_is_done_to_each_value_is_sent_once() -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    with connected("local"):
        assert list(map_on_ray(ray, Doubled(), range(7))) == [0, 2, 4, 6, 8, 10, 12]
    assert Doubled.num_sent == 1


def test_ray_is_told_no_addresses() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    from ray.data._internal.metadata_exporter import sanitize_for_struct

    address = "s3://AKIA:hunter2@bucket/a.parquet"
    hidden = OpaqueJob(Job(model=address, output=address, files=(address,)))
    assert sanitize_for_struct({"args": (hidden,)}) == {"args": ["a job"]}
    assert pickle.loads(pickle.dumps(hidden)).job == hidden.job


# the last one: after it Ray takes this process for a client
@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_told_without_its_token(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'munjang[ray]'")
    address = "ray://user:hunter2@127.0.0.1:9?token=hunter2"
    with pytest.raises(InputError, match="No Ray cluster answers") as refused, connected(address):
        pass
    assert "hunter2" not in "".join([str(refused.value), *capfd.readouterr()])
