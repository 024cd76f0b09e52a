"""Ray: connect to a cluster, run workers over shards, map a function over the nodes.

One row of the Ray dataset is one shard, so however Ray splits its own blocks, ours stay whole. Texts and vectors never
pass through its object store: a worker reads its shard, writes its blocks, and returns a summary of each.
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from munjang.errors import InputError, MissingExtra, MunjangError
from munjang.scale.addresses import without_secrets
from munjang.scale.job import Job
from munjang.scale.shards import Shard
from munjang.scale.worker import BlockSummary, Worker

CORES_PER_WORKER = 4  # on CPUs; more cores are better used by more workers
MAX_TASKS = 20_000  # beyond this, several shards share a task
RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # its lines on standard error are about Ray's internals, not about the job
}


@dataclass(frozen=True)
class Pool:
    """Number of workers and the resources of each."""

    size: int
    cpus: float
    gpus: float = 0


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a cluster; start Ray on this machine if neither `address` nor RAY_ADDRESS is given."""
    ray = require_ray()
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    is_own = address is None and not os.environ.get("RAY_ADDRESS")
    try:
        ray.init(address="local" if is_own else address, **options, **({"include_dashboard": False} if is_own else {}))
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"No Ray cluster answers: {without_secrets(str(error)):.300}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def require_ray() -> Any:
    """Import ray; raise MissingExtra if it is not installed."""
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtra("ray", "ray", "Encoding with --ray") from None
    return ray


def pool_for(ray: Any, workers: int | None, threads: int | None, device: str | None) -> Pool:
    """Plan one worker per GPU, or one per few cores of each node."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    num_gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if num_gpus and (device is None or device.startswith("cuda")):
        beside = [int(node["CPU"] // node["GPU"]) for node in nodes if node.get("GPU", 0) and node.get("CPU", 0)]
        return Pool(workers or num_gpus, max(min(beside, default=1) // 2, 1), 1)  # leave half to other processes
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cores:
        raise InputError("The cluster has no cores to work on.")
    per_worker = threads or min(CORES_PER_WORKER, min(cores))
    size = workers or sum(number // per_worker for number in cores)
    if size < 1 or not any(number >= per_worker for number in cores):
        raise InputError(f"No node has the {per_worker} cores of a worker (--threads); the largest has {max(cores)}.")
    return Pool(size, per_worker)


class OpaqueJob:
    """Hide a job's fields, which may hold keys: Ray writes the repr of constructor arguments into its metadata."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __repr__(self) -> str:
        return "a job"


class RayWorker:
    """The actor of Ray Data: takes rows of shards, yields rows of finished blocks."""

    def __init__(self, opaque: OpaqueJob, worker: type[Worker]) -> None:
        try:
            self.worker = worker(opaque.job)
        except MunjangError as error:
            raise RuntimeError(f"munjang: {error}") from None  # Ray can carry this to the driver

    def __call__(self, table: Any) -> Iterator[Any]:
        import pyarrow as pa

        for text in table.column("shard").to_pylist():
            shard = Shard(**{**json.loads(text), "columns": tuple(json.loads(text)["columns"])})
            try:
                for block in self.worker.work(shard):
                    yield pa.table({"block": [json.dumps(asdict(block))]})
            except MunjangError as error:
                raise RuntimeError(f"munjang: {error}") from None


def run_on_ray(
    ray: Any, job: Job, shards: Sequence[Shard], pool: Pool, worker: type[Worker] = Worker
) -> Iterator[BlockSummary]:
    """Run workers over shards; yield each block as soon as it is finished, in any order."""
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = 1  # report each block at once instead of gathering 128 MB of them
    context.wait_for_min_actors_s = -1
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"shard": json.dumps(asdict(shard))} for shard in shards]
    with ray.data.DataContext.current(context):
        data = ray.data.from_items(rows, override_num_blocks=min(len(rows), MAX_TASKS)).map_batches(
            RayWorker,
            fn_constructor_args=(OpaqueJob(job), worker),
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=pool.cpus,
            num_gpus=pool.gpus or None,
            compute=ray.data.ActorPoolStrategy(
                min_size=1,  # an idle worker makes room for one whose node went away
                max_size=pool.size,
                initial_size=pool.size,
                max_tasks_in_flight_per_actor=3,
                max_concurrent_calls_per_actor=2,
                enable_true_multi_threading=True,
            ),
        )
        for row in data.iter_rows():
            yield BlockSummary(**json.loads(row["block"]))


def map_on_ray(ray: Any, action: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
    """Map a function over the cluster; yield results in order, with a bounded number of tasks in flight."""
    task = ray.remote(max_retries=5)(_call)
    in_flight: list[Any] = []
    shared = ray.put(action)  # once: it may hold a matrix of queries or the addresses of all inputs
    max_in_flight = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    for value in values:
        if len(in_flight) >= max_in_flight:
            yield ray.get(in_flight.pop(0))
        in_flight.append(task.remote(shared, value))
    for reference in in_flight:
        yield ray.get(reference)


def _call(action: Callable[[Any], Any], value: Any) -> Any:
    return action(value)
