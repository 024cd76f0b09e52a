"""Ray: a cluster to work on, and Ray Data's pool of workers over spans.

One row of the dataset is one span, so whatever Ray makes of its own blocks, ours stay whole. Texts and vectors never
pass through its object store: a worker reads its span and writes its files, and gives back a line about each.
"""

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from munjang.errors import InputError, MissingExtra, MunjangError
from munjang.scale.job import Job
from munjang.scale.places import without_secrets
from munjang.scale.spans import Span
from munjang.scale.worker import Done, Worker

CORES = 4  # of a worker on a CPU; more cores are better used by more workers
MAX_TASKS = 20_000  # more of them are handed out several at a time
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # its own lines on standard error are about Ray's parts, not about the job
}


@dataclass(frozen=True)
class Pool:
    """How many workers, and what each takes."""

    size: int
    cpus: float
    gpus: float = 0


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray on a cluster, or on this machine alone where no address is given and RAY_ADDRESS names none."""
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
    """The package, or the line that installs it."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtra("ray", "ray", "Encoding with --ray") from None
    return ray


def pool_for(ray: Any, workers: int | None, threads: int | None, device: str | None) -> Pool:
    """A worker for each GPU, or for every few cores of each node."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    num_gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if num_gpus and (device is None or device.startswith("cuda")):
        beside = [int(node["CPU"] // node["GPU"]) for node in nodes if node.get("GPU", 0) and node.get("CPU", 0)]
        return Pool(workers or num_gpus, max(min(beside, default=1) // 2, 1), 1)  # half: others need some too
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cores:
        raise InputError("The cluster has no cores to work on.")
    each = threads or min(CORES, min(cores))
    size = workers or sum(number // each for number in cores)
    if size < 1 or not any(number >= each for number in cores):
        raise InputError(f"No node has the {each} cores of a worker (--threads); the largest has {max(cores)}.")
    return Pool(size, each)


class Hidden:
    """A job that prints nothing: Ray writes what constructors are given, dataclasses by field, into its metadata."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __repr__(self) -> str:
        return "a job"


class RayWorker:
    """What Ray Data calls: rows of spans in, rows of finished blocks out."""

    def __init__(self, hidden: Hidden, worker: type[Worker]) -> None:
        try:
            self.worker = worker(hidden.job)
        except MunjangError as error:
            raise RuntimeError(f"munjang: {error}") from None  # which Ray can carry to the driver

    def __call__(self, table: Any) -> Iterator[Any]:
        import pyarrow as pa

        for text in table.column("span").to_pylist():
            span = Span(**{**json.loads(text), "columns": tuple(json.loads(text)["columns"])})
            try:
                for done in self.worker.work(span):
                    yield pa.table({"done": [json.dumps(asdict(done))]})
            except MunjangError as error:
                raise RuntimeError(f"munjang: {error}") from None


def run_on_ray(ray: Any, job: Job, spans: Sequence[Span], pool: Pool, worker: type[Worker] = Worker) -> Iterator[Done]:
    """Work on spans; what is finished comes as it is finished, in any order."""
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = 1  # what a worker gives back is told at once, not gathered to 128 MB
    context.wait_for_min_actors_s = -1
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"span": json.dumps(asdict(span))} for span in spans]
    with ray.data.DataContext.current(context):
        data = ray.data.from_items(rows, override_num_blocks=min(len(rows), MAX_TASKS)).map_batches(
            RayWorker,
            fn_constructor_args=(Hidden(job), worker),
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=pool.cpus,
            num_gpus=pool.gpus or None,
            compute=ray.data.ActorPoolStrategy(
                min_size=1,  # so that a worker without work makes room for one whose node went away
                max_size=pool.size,
                initial_size=pool.size,
                max_tasks_in_flight_per_actor=3,
                max_concurrent_calls_per_actor=2,
                enable_true_multi_threading=True,
            ),
        )
        for row in data.iter_rows():
            yield Done(**json.loads(row["done"]))
