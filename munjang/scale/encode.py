"""Encode offline in blocks: plan the shards, keep what is finished, hand out the rest, commit each block.

encode(Job(model="path/to/model", output="vectors", files=("news.parquet",)), on=run_here)
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from munjang.bi_encoder import BiEncoder
from munjang.data.locks import locked
from munjang.engine.devices import gpu_dtype
from munjang.errors import InputError, MunjangError
from munjang.progress import Progress
from munjang.scale.addresses import TEMPORARY_SUFFIX, inside, make_folder, read_bytes, remove, shown, sizes_in, writing
from munjang.scale.job import Job, key_of, settings, sizes_of
from munjang.scale.manifest import Manifest, Mapper, changes, missing, read_manifest
from munjang.scale.shards import Shard, id_kind_of, shards_of
from munjang.scale.worker import BlockSummary, Worker, encode_texts, summary_of

COMMIT_INTERVAL_S = 2.0  # between two manifests: rewriting it for each of a hundred thousand blocks would take hours
# Runs workers over shards: in this process, or on Ray
Runner: TypeAlias = Callable[[Job, Sequence[Shard]], Iterator[BlockSummary]]


@dataclass(frozen=True)
class InputShards:
    """The shards of all inputs, and the number of each input's first row."""

    shards: tuple[Shard, ...]
    first_rows: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        return sum(shard.num_rows for shard in self.shards)

    def names(self, block_rows: int) -> list[str]:
        """Return the names of all blocks."""
        return [name for shard in self.shards for name in shard.blocks(block_rows)]


def run_here(job: Job, shards: Sequence[Shard], worker: type[Worker] = Worker) -> Iterator[BlockSummary]:
    """Run one worker in this process over one shard after the other."""
    this_worker = worker(job)
    for shard in shards:
        yield from this_worker.work(shard)


def encode(
    job: Job, on: Runner = run_here, restart: bool = False, progress: bool | None = None, mapper: Mapper = map
) -> Manifest:
    """Encode everything that is not committed yet; return the complete manifest. `mapper` counts the inputs."""
    for subfolder in ("blocks", "bad", "begun"):
        make_folder(inside(job.output, subfolder))
    lock = None if "://" in job.output else locked(Path(job.output), Path(job.output))
    try:
        return _encode(job, on, restart, progress, mapper)
    finally:
        if lock is not None:
            os.close(lock)


def prepared(job: Job) -> tuple[Job, dict[str, Any], int]:
    """Return the job with its model's fingerprint and its key, its settings, and the dimension of its vectors."""
    is_gpu = (job.device or "").startswith("cuda")  # the workers have one, this machine perhaps not
    device, dtype = ("cpu", None) if is_gpu else (job.device, job.dtype)
    model = BiEncoder.load(job.model, device, dtype, job.threads)  # fails now if the model rejects a setting
    dimension = int(encode_texts(model, job, []).shape[1])
    dtype = job.dtype or str(gpu_dtype(model.network) if is_gpu else model.dtype).removeprefix("torch.")
    job = replace(job, dtype=dtype, fingerprint=model.fingerprint, id_kind=id_kind_of(job.files, job.choice))
    known = settings(job, sizes_of(job.files))
    return replace(job, key=key_of(known)), known, dimension


def _encode(job: Job, on: Runner, restart: bool, progress: bool | None, mapper: Mapper) -> Manifest:
    job, known, dimension = prepared(job)
    old = None if restart else read_manifest(job.output)
    if old is not None and old.key != job.key:
        raise InputError(
            f"{shown(job.output)} holds a run with other settings: {changes(old.settings, known)}. "
            "Repeat that command to finish it, choose another folder, or drop it with --restart"
        )
    if old is None:
        clear(job.output)
    planned = plan_shards(job, progress, mapper)
    job = replace(job, first_rows=planned.first_rows)
    manifest = old or Manifest(job.key, known, job.fingerprint, dimension)
    manifest.write(job.output)
    manifest = adopted(job, manifest)
    return run(job, manifest, planned, on, progress)


def clear(folder: str) -> None:
    """Delete what an earlier run left, the manifest first: without it nothing else counts."""
    for name in ("manifest.json", "plan.json"):
        remove(inside(folder, name))
    for subfolder in ("blocks", "bad", "sorted"):
        _empty(folder, subfolder)


def _empty(folder: str, subfolder: str) -> None:
    for name in sizes_in(inside(folder, subfolder)):
        remove(inside(folder, f"{subfolder}/{name}"))


@dataclass(frozen=True)
class ShardCounter:
    """Cut one input into shards, on any node."""

    job: Job

    def __call__(self, number: int) -> list[Shard]:
        return shards_of(number, self.job.files[number], self.job.choice, self.job.block_rows)


def plan_shards(job: Job, progress: bool | None = None, mapper: Mapper = map) -> InputShards:
    """Cut the inputs into shards, or read how an earlier run of this job cut them."""
    content = read_bytes(inside(job.output, "plan.json"))
    if content is not None and (plan := json.loads(content))["key"] == job.key:
        shards = tuple(Shard(**{**kept, "columns": tuple(kept["columns"])}) for kept in plan["shards"])
        return InputShards(shards, tuple(plan["first_rows"]))
    all_shards: list[Shard] = []
    first_rows = [0]
    with Progress(len(job.files), "counting rows: files", progress) as bar:
        for found_shards in mapper(ShardCounter(job), range(len(job.files))):
            all_shards += found_shards
            first_rows.append(first_rows[-1] + sum(shard.num_rows for shard in found_shards))
            bar.advance()
    planned = InputShards(tuple(all_shards), tuple(first_rows))
    with writing(inside(job.output, "plan.json")) as file:
        plan = {"key": job.key, "first_rows": first_rows, "shards": [asdict(shard) for shard in all_shards]}
        file.write(json.dumps(plan).encode())
    return planned


def adopted(job: Job, manifest: Manifest) -> Manifest:
    """Add blocks that a killed run finished but did not commit; drop blocks that are missing or damaged."""
    _empty(job.output, "begun")
    blocks = dict(manifest.blocks)
    there = sizes_in(inside(job.output, "blocks"))
    for name in there:
        if name.endswith(TEMPORARY_SUFFIX):
            remove(inside(job.output, f"blocks/{name}"))
        elif (block := name.removesuffix(".parquet")) not in blocks:
            summary = summary_of(inside(job.output, f"blocks/{name}"))
            if summary is not None and summary.key == job.key:
                blocks[block] = summary
    sizes = {f"{name}.parquet": summary.num_bytes for name, summary in blocks.items()}
    damaged = _remove_damaged(job.output, "blocks", sizes, there)
    for name in damaged:
        del blocks[name.removesuffix(".parquet")]
    manifest = replace(manifest, blocks=blocks, is_complete=manifest.is_complete and not damaged)
    return _without_damaged_order(job.output, manifest)


def _without_damaged_order(folder: str, manifest: Manifest) -> Manifest:
    """Drop the global order if one of its files is missing or damaged; readers then use the blocks."""
    names = [name.removeprefix("sorted/") for name in manifest.sorted or () if name.startswith("sorted/")]
    sizes = manifest.sorted_bytes or [None] * len(names)
    if not _remove_damaged(folder, "sorted", dict(zip(names, sizes, strict=False)), sizes_in(inside(folder, "sorted"))):
        return manifest
    return replace(manifest, sorted=None, sorted_bytes=None)


def _remove_damaged(
    folder: str, subfolder: str, recorded: Mapping[str, int | None], there: Mapping[str, int]
) -> list[str]:
    """Delete files whose size has changed; return their names and those of missing files."""
    changed = [name for name, size in recorded.items() if name in there and size not in (None, there[name])]
    for name in changed:
        remove(inside(folder, f"{subfolder}/{name}"))
    return [*changed, *(name for name in recorded if name not in there)]


def run(job: Job, manifest: Manifest, planned: InputShards, on: Runner, progress: bool | None) -> Manifest:
    """Hand out the missing blocks and commit the finished ones."""
    names = planned.names(job.block_rows)
    lacking = set(missing(names, manifest))
    shards = [shard for shard in planned.shards if lacking.intersection(shard.blocks(job.block_rows))]
    blocks, committed = dict(manifest.blocks), time.monotonic()
    with Progress(planned.num_rows, "encoding", progress) as bar:
        bar.skip(manifest.num_rows + manifest.num_bad)
        for summary in on(job, shards) if shards else ():
            if summary.name in blocks:
                continue  # of a shard that an earlier run began
            blocks[summary.name] = summary
            bar.advance(summary.rows + summary.bad)
            if time.monotonic() - committed >= COMMIT_INTERVAL_S:
                replace(manifest, blocks=blocks).write(job.output)
                committed = time.monotonic()
    manifest = replace(manifest, blocks=blocks)
    left = missing(names, manifest)
    if not left and sizes_of(job.files) != _recorded(job, manifest):
        raise InputError("An input was changed while it was read; run the command again with --restart")
    manifest = replace(manifest, is_complete=not left)
    manifest.write(job.output)
    if left:
        raise MunjangError(f"{len(left):,} blocks were not finished, {left[0]} first; repeat the command to go on")
    return manifest


def _recorded(job: Job, manifest: Manifest) -> dict[str, list[int]]:
    """Return size and time of every input as the manifest has them."""
    return {file: list(stated[1:]) for file, stated in zip(job.files, manifest.settings["inputs"], strict=True)}
