"""`munjang encode --ray`: encode files on a cluster into a folder of vectors."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from munjang.data.files import STDIN
from munjang.errors import InputError, MunjangError
from munjang.scale.addresses import absolute, shown, without_secrets
from munjang.scale.cluster import Pool, connected, map_on_ray, pool_for, require_ray, run_on_ray
from munjang.scale.encode import encode
from munjang.scale.job import CPU_BLOCK_ROWS, GPU_BLOCK_ROWS, Job
from munjang.scale.manifest import Manifest
from munjang.scale.ordering import sort_all
from munjang.scale.shards import Choice, files_of
from munjang.scale.worker import Worker


@dataclass(frozen=True, kw_only=True)
class Request:
    """Options of the command, named like its flags."""

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
    """Encode the inputs; sort the rows if asked. Messages and errors show no keys or passwords."""
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
        raise MunjangError(_message_of(error)) from None
    _say(request, describe(manifest, request.output))
    return manifest


def ray_errors() -> tuple[type[BaseException], ...]:
    """Return the errors that Ray raises for a failed worker or a lost cluster."""
    from ray.exceptions import RayError

    return (RayError, RuntimeError)


def _run(ray: Any, request: Request, job: Job, pool: Pool, worker: type[Worker]) -> Manifest:
    _say(request, f"{pool.size} workers of {'one GPU' if pool.gpus else f'{pool.cpus:g} cores'} each")
    runner, mapper = partial(_run_shards, ray, pool, worker), partial(map_on_ray, ray)
    manifest = encode(job, runner, request.restart, not request.quiet, mapper if len(job.files) > 1 else map)
    return sort_all(job.output, manifest, mapper) if request.sort else manifest


def _run_shards(ray: Any, pool: Pool, worker: type[Worker], job: Job, shards: Sequence[Any]) -> Iterator[Any]:
    return run_on_ray(ray, job, shards, pool, worker)


def job_of(request: Request, files: tuple[str, ...], choice: Choice, pool: Pool) -> Job:
    """Return the job that the workers run."""
    role = "query" if request.query else "document" if request.document else None
    names = ("prompt", "prompt_name", "normalize", "truncate_dim", "precision", "long", "batch_tokens", "dtype")
    same = {name: getattr(request, name) for name in (*names, "keep_text", "text_hash")}
    same |= {"model": _model_of(request.model), "output": absolute(request.output)}
    device = request.device or ("cuda" if pool.gpus else "cpu")
    rows = request.block_rows or (GPU_BLOCK_ROWS if pool.gpus else CPU_BLOCK_ROWS)
    threads = None if pool.gpus else int(pool.cpus)
    paths = tuple(map(absolute, files))
    return Job(files=paths, choice=choice, role=role, device=device, block_rows=rows, threads=threads, **same)


def _model_of(model: str | None) -> str | None:
    """Make the path of a model folder absolute; keep a Hub name or bundled name as it is."""
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


def describe(manifest: Manifest, output: str) -> str:
    """Summarize a finished run in one line."""
    clauses = [f"{manifest.num_rows:,} vectors in {len(manifest.files()):,} files of {shown(output)}"]
    if manifest.num_bad:
        clauses.append(f"{manifest.num_bad:,} bad rows: {shown(output)}/bad")
    if manifest.num_cut:
        clauses.append(f"{manifest.num_cut:,} texts were longer than the model reads and were cut; see --long")
    return "; ".join(clauses)


def _message_of(error: BaseException) -> str:
    """Return our own error within Ray's report, or else the report's last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line.partition("munjang: ")[2] for line in lines if "munjang: " in line]
    return without_secrets((ours or lines or [type(error).__name__])[-1])[:500]


def _say(request: Request, message: str) -> None:
    if not request.quiet:
        print("munjang:", message, file=sys.stderr)
