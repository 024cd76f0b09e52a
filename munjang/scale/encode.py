"""Offline encoding in blocks: plan, go on with what is there, hand out the rest, commit what comes back.

encode(Job(model="path/to/model", output="vectors", files=("news.parquet",)), on=here)
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
from munjang.errors import InputError, MunjangError
from munjang.progress import Progress
from munjang.scale.job import Job, key_of, settings, sizes_of
from munjang.scale.manifest import Each, Manifest, changes, missing, read_manifest
from munjang.scale.places import TEMPORARY, inside, make_folder, read_bytes, remove, shown, sizes_in, writing
from munjang.scale.spans import Span, id_kind_of, spans_of
from munjang.scale.worker import Done, Worker, encode_texts, summary_of

COMMIT_S = 2.0  # between two manifests: rewriting it for each of a hundred thousand blocks would take hours
# What works on spans: here, or on Ray
Engine: TypeAlias = Callable[[Job, Sequence[Span]], Iterator[Done]]


@dataclass(frozen=True)
class Planned:
    """The spans of all inputs, and where each input's rows begin."""

    spans: tuple[Span, ...]
    first_rows: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        return sum(span.num_rows for span in self.spans)

    def names(self, block_rows: int) -> list[str]:
        """Of all blocks."""
        return [name for span in self.spans for name in span.blocks(block_rows)]


def here(job: Job, spans: Sequence[Span], worker: type[Worker] = Worker) -> Iterator[Done]:
    """One worker in this process, one span after the other."""
    hand = worker(job)
    for span in spans:
        yield from hand.work(span)


def encode(
    job: Job, on: Engine = here, restart: bool = False, progress: bool | None = None, each: Each = map
) -> Manifest:
    """Encode everything that is not committed yet; gives the manifest, which is complete. `each` counts the inputs."""
    for part in ("blocks", "bad", "begun"):
        make_folder(inside(job.output, part))
    lock = None if "://" in job.output else locked(Path(job.output), Path(job.output))
    try:
        return _encode(job, on, restart, progress, each)
    finally:
        if lock is not None:
            os.close(lock)


def prepared(job: Job) -> tuple[Job, dict[str, Any], int]:
    """The job with its model's fingerprint and its key, its settings, and the width of its vectors."""
    is_gpu = (job.device or "").startswith("cuda")  # which the workers have, but perhaps not this machine
    device, dtype = ("cpu", None) if is_gpu else (job.device, job.dtype)
    model = BiEncoder.load(job.model, device, dtype, job.threads)  # once, so that what it refuses is refused now
    width = int(encode_texts(model, job, []).shape[1])
    dtype = job.dtype or ("bfloat16" if is_gpu else str(model.dtype).removeprefix("torch."))
    job = replace(job, dtype=dtype, fingerprint=model.fingerprint, id_kind=id_kind_of(job.files, job.choice))
    known = settings(job, sizes_of(job.files))
    return replace(job, key=key_of(known)), known, width


def _encode(job: Job, on: Engine, restart: bool, progress: bool | None, each: Each) -> Manifest:
    job, known, width = prepared(job)
    old = None if restart else read_manifest(job.output)
    if old is not None and old.key != job.key:
        raise InputError(
            f"{shown(job.output)} holds a run with other settings: {changes(old.settings, known)}. "
            "Repeat that command to finish it, choose another folder, or drop it with --restart"
        )
    if old is None:
        clear(job.output)
    planned = plan(job, progress, each)
    job = replace(job, first_rows=planned.first_rows)
    manifest = old or Manifest(job.key, known, job.fingerprint, width)
    manifest.write(job.output)
    manifest = adopted(job, manifest)
    return run(job, manifest, planned, on, progress)


def clear(folder: str) -> None:
    """Drop what an earlier run left; the manifest first: without it the rest is debris."""
    for name in ("manifest.json", "plan.json"):
        remove(inside(folder, name))
    for part in ("blocks", "bad", "sorted"):
        _empty(folder, part)


def _empty(folder: str, part: str) -> None:
    for name in sizes_in(inside(folder, part)):
        remove(inside(folder, f"{part}/{name}"))


@dataclass(frozen=True)
class Counted:
    """The spans of one input."""

    job: Job

    def __call__(self, number: int) -> list[Span]:
        return spans_of(number, self.job.files[number], self.job.choice, self.job.block_rows)


def plan(job: Job, progress: bool | None = None, each: Each = map) -> Planned:
    """How the inputs are cut; read from the folder where this job has been planned before."""
    content = read_bytes(inside(job.output, "plan.json"))
    if content is not None and (found := json.loads(content))["key"] == job.key:
        spans = tuple(Span(**{**kept, "columns": tuple(kept["columns"])}) for kept in found["spans"])
        return Planned(spans, tuple(found["first_rows"]))
    all_spans: list[Span] = []
    first_rows = [0]
    with Progress(len(job.files), "counting rows: files", progress) as bar:
        for found_spans in each(Counted(job), range(len(job.files))):
            all_spans += found_spans
            first_rows.append(first_rows[-1] + sum(span.num_rows for span in found_spans))
            bar.advance()
    planned = Planned(tuple(all_spans), tuple(first_rows))
    with writing(inside(job.output, "plan.json")) as file:
        kept = {"key": job.key, "first_rows": first_rows, "spans": [asdict(span) for span in all_spans]}
        file.write(json.dumps(kept).encode())
    return planned


def adopted(job: Job, manifest: Manifest) -> Manifest:
    """With the blocks that were finished when a run was killed, and without what is gone or damaged since."""
    _empty(job.output, "begun")
    blocks = dict(manifest.blocks)
    there = sizes_in(inside(job.output, "blocks"))
    for name in there:
        if name.endswith(TEMPORARY):
            remove(inside(job.output, f"blocks/{name}"))
        elif (block := name.removesuffix(".parquet")) not in blocks:
            done = summary_of(inside(job.output, f"blocks/{name}"))
            if done is not None and done.key == job.key:
                blocks[block] = done
    spoilt = _spoilt(job.output, "blocks", {f"{name}.parquet": done.num_bytes for name, done in blocks.items()}, there)
    for name in spoilt:
        del blocks[name.removesuffix(".parquet")]
    manifest = replace(manifest, blocks=blocks, is_complete=manifest.is_complete and not spoilt)
    return _with_whole_order(job.output, manifest)


def _with_whole_order(folder: str, manifest: Manifest) -> Manifest:
    """Without its global order if a file of that is gone or damaged: readers use the blocks until it is made again."""
    names = [name.removeprefix("sorted/") for name in manifest.sorted or () if name.startswith("sorted/")]
    sizes = manifest.sorted_bytes or [None] * len(names)
    if not _spoilt(folder, "sorted", dict(zip(names, sizes, strict=False)), sizes_in(inside(folder, "sorted"))):
        return manifest
    return replace(manifest, sorted=None, sorted_bytes=None)


def _spoilt(folder: str, part: str, recorded: Mapping[str, int | None], there: Mapping[str, int]) -> list[str]:
    """The files that are gone, or of another size than they were, which are removed."""
    changed = [name for name, size in recorded.items() if name in there and size not in (None, there[name])]
    for name in changed:
        remove(inside(folder, f"{part}/{name}"))
    return [*changed, *(name for name in recorded if name not in there)]


def run(job: Job, manifest: Manifest, planned: Planned, on: Engine, progress: bool | None) -> Manifest:
    """Hand out what is missing and commit what is finished."""
    names = planned.names(job.block_rows)
    lacking = set(missing(names, manifest))
    spans = [span for span in planned.spans if lacking.intersection(span.blocks(job.block_rows))]
    blocks, committed = dict(manifest.blocks), time.monotonic()
    with Progress(planned.num_rows, "encoding", progress) as bar:
        bar.skip(manifest.num_rows + manifest.num_bad)
        for done in on(job, spans) if spans else ():
            if done.name in blocks:
                continue  # of a span that was begun before
            blocks[done.name] = done
            bar.advance(done.rows + done.bad)
            if time.monotonic() - committed >= COMMIT_S:
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
    return {file: list(each[1:]) for file, each in zip(job.files, manifest.settings["inputs"], strict=True)}
