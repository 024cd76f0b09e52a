"""`munjang encode --ray`: from options to a folder of vectors on a cluster."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from munjang.data.files import STDIN
from munjang.errors import InputError, MunjangError
from munjang.scale.cluster import Pool, connected, pool_for, require_ray, run_on_ray
from munjang.scale.encode import encode
from munjang.scale.job import CPU_BLOCK, GPU_BLOCK, Job
from munjang.scale.manifest import Manifest
from munjang.scale.ordering import sort_all
from munjang.scale.places import absolute, shown, without_secrets
from munjang.scale.spans import Choice, files_of
from munjang.scale.worker import Worker


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command was asked for; names as its flags."""

    inputs: Sequence[str]
    output: str
    model: str | None = None
    address: str | None = None
    column: str | None = None
    id_column: str | None = None
    format: str | None = None
    prompt: str | None = None
    prompt_name: str | None = None
    query: bool = False
    document: bool = False
    normalize: bool | None = None
    truncate_dim: int | None = None
    precision: str = "float32"
    long: str = "truncate"
    batch_tokens: int | None = None
    block_rows: int | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    workers: int | None = None
    keep_text: bool = False
    text_hash: bool = False
    sort: bool = False
    restart: bool = False
    quiet: bool = False


def encode_on_ray(request: Request, worker: type[Worker] = Worker) -> Manifest:
    """Encode, and put in order where that was asked for. Messages and errors show no keys or passwords."""
    require_ray()
    _check(request)
    choice = Choice(request.column, request.id_column, request.format)
    files = tuple(files_of(request.inputs, request.format))
    try:
        with connected(request.address) as ray:
            pool = pool_for(ray, request.workers, request.threads, request.device)
            manifest = _run(ray, request, job_of(request, files, choice, pool), pool, worker)
    except MunjangError:
        raise
    except ray_errors() as error:
        raise MunjangError(_told(error)) from None
    _say(request, told(manifest, request.output))
    return manifest


def ray_errors() -> tuple[type[BaseException], ...]:
    """What Ray raises for a worker that failed or a cluster that is gone."""
    from ray.exceptions import RayError

    return (RayError, RuntimeError)


def _run(ray: Any, request: Request, job: Job, pool: Pool, worker: type[Worker]) -> Manifest:
    _say(request, f"{pool.size} workers of {'one GPU' if pool.gpus else f'{pool.cpus:g} cores'} each")
    engine, each = partial(_engine, ray, pool, worker), partial(each_on_ray, ray)
    manifest = encode(job, engine, request.restart, not request.quiet, each if len(job.files) > 1 else map)
    return sort_all(job.output, manifest, each) if request.sort else manifest


def _engine(ray: Any, pool: Pool, worker: type[Worker], job: Job, spans: Sequence[Any]) -> Iterator[Any]:
    return run_on_ray(ray, job, spans, pool, worker)


def each_on_ray(ray: Any, action: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
    """`map` over the cluster, in order, some of it under way at a time."""
    task = ray.remote(max_retries=5)(_call)
    waiting: list[Any] = []
    shared = ray.put(action)  # once, as it may hold a matrix of queries or the addresses of all inputs
    limit = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    for value in values:
        if len(waiting) >= limit:
            yield ray.get(waiting.pop(0))
        waiting.append(task.remote(shared, value))
    for reference in waiting:
        yield ray.get(reference)


def _call(action: Callable[[Any], Any], value: Any) -> Any:
    return action(value)


def job_of(request: Request, files: tuple[str, ...], choice: Choice, pool: Pool) -> Job:
    """What the workers have to know."""
    role = "query" if request.query else "document" if request.document else None
    names = ("prompt", "prompt_name", "normalize", "truncate_dim", "precision", "long", "batch_tokens", "dtype")
    same = {name: getattr(request, name) for name in (*names, "keep_text", "text_hash")}
    same |= {"model": _model_of(request.model), "output": absolute(request.output)}
    device = request.device or ("cuda" if pool.gpus else "cpu")
    rows = request.block_rows or (GPU_BLOCK if pool.gpus else CPU_BLOCK)
    threads = None if pool.gpus else int(pool.cpus)
    paths = tuple(map(absolute, files))
    return Job(files=paths, choice=choice, role=role, device=device, block_rows=rows, threads=threads, **same)


def _model_of(model: str | None) -> str | None:
    """A folder by its full path; a name of the Hub or of a bundled model as it is."""
    if model is None:
        return None
    path = os.path.expanduser(model)
    return os.path.abspath(path) if os.path.isdir(path) else model


def _check(request: Request) -> None:
    for name in ("block_rows", "workers", "threads"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if STDIN in request.inputs:
        raise InputError("The workers of a cluster can't read standard input; give files")
    if request.output.endswith((".npy", ".parquet", ".jsonl")):
        raise InputError(f"{shown(request.output)}: with --ray the output is a folder of Parquet files")
    cluster = request.address or os.environ.get("RAY_ADDRESS", "")
    if cluster.startswith("ray://"):
        raise InputError(
            f"{shown(cluster)} is Ray Client, over which Ray Data can't work: run the command on a node of the "
            "cluster, with --ray auto or --ray HOST:6379"
        )
    if request.device is not None and "," in request.device:
        raise InputError("--device takes one name with --ray: every worker has one device")


def told(manifest: Manifest, output: str) -> str:
    """What was done, for people."""
    parts = [f"{manifest.num_rows:,} vectors in {len(manifest.files()):,} files of {shown(output)}"]
    if manifest.num_bad:
        parts.append(f"{manifest.num_bad:,} bad rows: {shown(output)}/bad")
    if manifest.num_cut:
        parts.append(f"{manifest.num_cut:,} texts were longer than the model reads and were cut; see --long")
    return "; ".join(parts)


def _told(error: BaseException) -> str:
    """The last line of Ray's report, which is that of our own error where it was one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line.partition("munjang: ")[2] for line in lines if "munjang: " in line]
    return without_secrets((ours or lines or [type(error).__name__])[-1])[:500]


def _say(request: Request, message: str) -> None:
    if not request.quiet:
        print("munjang:", message, file=sys.stderr)
