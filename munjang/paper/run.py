"""Do all the work of the tables, one line and seed after the other; what is done is on disk and never done again."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from munjang import checkpoint
from munjang.data.files import replacing
from munjang.data.locks import locked
from munjang.errors import InputError
from munjang.paper.config import PaperConfig
from munjang.paper.experiments import tables
from munjang.paper.report import Result, write
from munjang.paper.sets import Sets, is_probe
from munjang.paper.speed import measure_speed
from munjang.paper.work import Job, is_trained, remove_models, work

SPEED = "speed"  # a table of its own, of the paper's section 7
POLL_S = 1.0  # a model may be trained long before its job ends


class Paper:
    """The tables of a model on the sets of a folder, and the folder that holds what is done of them."""

    def __init__(self, model: str, data: Path, out: Path, config: PaperConfig) -> None:
        self.config = config.applied()
        self.model = checkpoint.resolve(model)
        self.name = Path(model).resolve().name if Path(model).is_dir() else model
        self.data, self.out, self.sets = data, out, Sets(data, self.config)
        found = tables(self.sets.language, self.config.sts_objective)
        names = [*(table.name for table in found), SPEED]
        unknown = [name for name in config.only if name not in names]
        if unknown:
            raise InputError(f"There is no table {unknown[0]!r}; choose from {', '.join(names)}.")
        self.tables = [table for table in found if not config.only or table.name in config.only]
        self.has_speed = not config.only or SPEED in config.only
        self.missing = self.sets.missing(self.tables)
        self.sets.check(self.tables)
        self.jobs = list(self._jobs())
        if not self.jobs and not self.has_speed:
            raise InputError("\n".join([f"{data} has no set to measure on.", *self.missing]))

    def _jobs(self) -> Iterator[Job]:
        """Yield each line once a seed, with the sets of all its tables: all lines of a seed, then those of the next.

        Sets that a classifier is trained for take minutes, the others seconds: they are a job of their own, so that
        the others' scores are on disk, and what starts from the same model need not wait.
        """
        sets: dict[Any, dict[str, None]] = {}
        for table in self.tables:
            for line in table.lines:
                measured = self.sets.measured(table)
                if measured and self.sets.can_train(line):
                    sets.setdefault(line, {}).update(dict.fromkeys(measured))
        lines = sorted(sets, key=lambda line: len(line.stages))
        for seed in self.config.seeds:
            for line in lines if seed == self.config.seeds[0] else filter(lambda line: line.stages, lines):
                probed = tuple(key for key in sets[line] if is_probe(key))
                others = tuple(key for key in sets[line] if key not in probed)
                yield from (Job(line, seed, part, keys) for part in line.parts for keys in (others, probed) if keys)

    def run(self, say: Callable[[str], None]) -> Result:
        """Do what is left, and write the page after each piece."""
        self.out.mkdir(parents=True, exist_ok=True)
        lock = locked(self.out, self.out)
        try:
            self._check_settings()
            for message in self.missing:
                say(message)
            left = [replace(job, sets=sets) for job in self.jobs if (sets := self._unmeasured(job))]
            say(f"{len(self.jobs)} trainings and measurements, {len(self.jobs) - len(left)} of them done")
            for number, (job, record) in enumerate(self._work(left), len(self.jobs) - len(left) + 1):
                self._put(self._path(job), record | {"scores": self._scores(job) | record["scores"]})
                seconds = record["train_seconds"] + record["measure_seconds"]
                say(f"{number} of {len(self.jobs)}: {job.key}, {seconds:.0f} s: {_main_scores(record)}")
                self._clean()
                write(self.out, self.result())
            if self.has_speed and not self._speed_path.exists():
                self._put(self._speed_path, measure_speed(self.model, self.sets, self.config))
            result = self.result()
            write(self.out, result)
            return result
        finally:
            os.close(lock)

    def result(self) -> Result:
        """Gather all records."""
        paths = dict.fromkeys(map(self._path, self.jobs))
        records = [json.loads(path.read_text("utf-8")) for path in paths if path.exists()]
        speed = json.loads(self._speed_path.read_text("utf-8")) if self._speed_path.exists() else None
        return Result.of(self.name, self.config, self.tables, records, speed, self.missing)

    def _work(self, left: list[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Yield each job with its record; with several processes, one trains a model and others wait for it."""
        arguments = self.model, self.data, self.out, self.config
        if self.config.workers == 1:
            yield from ((job, work(job, *arguments)) for job in left)
            return
        # the longest first: else one of them runs alone at the end
        pending = sorted(left, key=lambda job: (job.seed, not any(map(is_probe, job.sets)), -self._cost(job)))
        running = dict[Future[dict[str, Any]], Job]()
        context = get_context("spawn")
        with ProcessPoolExecutor(self.config.workers, context, _set_threads, (self.config.workers,)) as pool:
            while pending or running:
                busy = {key for job in running.values() for key in self._untrained(job)}
                for job in pending.copy():
                    if len(running) < self.config.workers and busy.isdisjoint(job.stage_keys):
                        pending.remove(job)
                        running[pool.submit(work, job, *arguments)] = job
                        busy |= self._untrained(job)
                for future in wait(running, POLL_S, FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()

    def _untrained(self, job: Job) -> set[str]:
        return {key for key in job.stage_keys if not is_trained(self.out / "models", key)}

    def _cost(self, job: Job) -> float:
        """Guess how long a training takes, by its epochs; a cross-encoder reads both texts together."""
        epochs = sum(self.config.training(stage.objective, job.seed).epochs for stage in job.line.stages)
        return epochs * (2 if job.line.kind == "cross" else 1)

    def _clean(self) -> None:
        """Remove the models that no job needs: each is needed by its own, and by those that go on from it."""
        needed = {key for job in self.jobs if self._unmeasured(job) for key in job.stage_keys}
        known = {key for job in self.jobs for key in job.stage_keys}
        remove_models(self.out / "models", sorted(known - needed))

    def _check_settings(self) -> None:
        path = self.out / "settings.json"
        settings = {"model": str(self.model), "data": str(self.data.resolve()), **self.config.deciding()}
        if path.exists():
            before = json.loads(path.read_text("utf-8"))
            changed = [name for name in settings if settings[name] != before.get(name)]
            if changed:
                name = changed[0]
                raise InputError(
                    f"{self.out} holds a run with {name} {before.get(name)!r}, and this one has {settings[name]!r}; "
                    "give the same, or another folder with -o."
                )
        self._put(path, settings)

    def _unmeasured(self, job: Job) -> tuple[str, ...]:
        """Return the sets that a job's record lacks: another table may have added some."""
        done = self._scores(job)
        return tuple(key for key in job.sets if key not in done)

    def _scores(self, job: Job) -> dict[str, Any]:
        path = self._path(job)
        scores: dict[str, Any] = json.loads(path.read_text("utf-8"))["scores"] if path.exists() else {}
        return scores

    def _path(self, job: Job) -> Path:
        return self.out / "records" / f"{job.key}.json"

    @property
    def _speed_path(self) -> Path:
        return self.out / "records" / "speed.json"

    def _put(self, path: Path, record: dict[str, Any]) -> None:
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps(record, indent=1, ensure_ascii=False).encode("utf-8"))


def plan(paper: Paper) -> list[str]:
    """Return what would be trained and measured, and what is missing."""
    lines = []
    for table in paper.tables:
        there = paper.sets.measured(table)
        names = [line.name for line in table.lines if paper.sets.can_train(line)] if there else []
        lines.append(f"{table.name}: {', '.join(names) or 'nothing'}; on {', '.join(there) or 'no set that is there'}")
    lines += [f"{SPEED}: {paper.config.speed_texts:,} texts"] if paper.has_speed else []
    return [*lines, *paper.missing, f"{len(paper.jobs)} trainings and measurements"]


def _main_scores(record: dict[str, Any]) -> str:
    names = ("spearman_cosine", "spearman", "accuracy", "accuracy_cosine")
    found = {key: next((each[name] for name in names if name in each), None) for key, each in record["scores"].items()}
    return ", ".join(f"{key} {value}" for key, value in found.items() if value is not None)


def _set_threads(workers: int) -> None:
    torch.set_num_threads(max((os.cpu_count() or 1) // workers, 1))
