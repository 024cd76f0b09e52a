"""One piece of the work: train a line with one seed on one part of the data, and measure it."""

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.engine.measure import processor
from munjang.errors import InputError
from munjang.evaluation.kinds import KINDS
from munjang.evaluation.kinds.base import Settings, kind_of
from munjang.paper.config import PaperConfig
from munjang.paper.experiments import CONCATENATIONS, Line, Stage
from munjang.paper.sets import Sets
from munjang.training.run import folder_of, is_begun
from munjang.training.static import static_model
from munjang.training.train import train

NUM_NLI_LABELS = 3
_sets = cache(Sets)  # a process reads each file once


@dataclass(frozen=True)
class Job:
    """A line, a seed, a part of the data, and the sets to measure on."""

    line: Line
    seed: int
    part: str
    sets: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return the name of its files."""
        return "-".join(filter(None, (self.line.name, f"seed{self.seed}", self.part)))

    def stage_key(self, num_stages: int) -> str:
        """Return the name of the model after so many stages; lines that begin alike share it."""
        stages = "+".join(_stage_name(stage) for stage in self.line.stages[:num_stages])
        return "-".join(filter(None, (self.line.kind, self.line.pooling, stages, f"seed{self.seed}", self.part)))

    @property
    def stage_keys(self) -> list[str]:
        """Return the names of the models after each stage."""
        return [self.stage_key(place) for place in range(1, len(self.line.stages) + 1)]


def work(job: Job, model: Path, data: Path, out: Path, config: PaperConfig) -> dict[str, Any]:
    """Train and measure; return the record."""
    started, sets = time.perf_counter(), _sets(data, config)
    holder = _trained(job, model, out / "models", sets, config)
    trained = time.perf_counter()
    scores = {key: _metrics(holder, *sets.test(key, job.part), job.seed) for key in job.sets}
    return {
        "line": job.line.name,
        "seed": job.seed,
        "part": job.part,
        "scores": scores,
        "train_rows": {stage.data: len(sets.train(stage.data, job.part)) for stage in job.line.stages},
        "train_seconds": round(trained - started, 2),
        "measure_seconds": round(time.perf_counter() - trained, 2),
        "machine": processor(holder.device),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def is_trained(folder: Path, key: str) -> bool:
    """Tell whether a model is there, whole."""
    return _done(folder / key).exists()


def remove_models(folder: Path, keys: Sequence[str]) -> None:
    """Remove models that no line needs any more."""
    for key in keys:
        _done(folder / key).unlink(missing_ok=True)
        for path in (folder / key, folder_of(folder / key)):
            shutil.rmtree(path, ignore_errors=True)


def _trained(job: Job, model: Path, folder: Path, sets: Sets, config: PaperConfig) -> BiEncoder | CrossEncoder:
    """Load what is already trained, and train the stages that are left."""
    line, path = job.line, model
    if line.kind == "static":
        return _static(model, config)
    holder: BiEncoder | CrossEncoder | None = None
    if line.kind == "bi":
        holder = BiEncoder.load(model, config.device, "float32", pooling=line.pooling)
    for stage, key in zip(line.stages, job.stage_keys, strict=True):
        output = folder / key
        if _done(output).exists():
            if line.kind == "bi":
                holder = BiEncoder.load(output, config.device, "float32")
            else:
                holder = CrossEncoder.load(output, config.device, "float32")
        else:
            if line.kind == "cross":  # another number of labels: the encoder goes on, the head is new
                torch.manual_seed(job.seed)
                num_labels = NUM_NLI_LABELS if stage.objective == "cross_entropy" else 1
                holder = CrossEncoder.create(path, num_labels, config.device, "float32")
            assert holder is not None
            settings = config.training(stage.objective, job.seed)
            settings = replace(settings, output=str(output), resume=is_begun(output))
            options = {} if stage.concatenation is None else {"concatenation": stage.concatenation}
            train(holder, sets.train(stage.data, job.part), stage.objective, settings, options)
            _done(output).touch()
        path = output
    assert holder is not None
    return holder


def _static(model: Path, config: PaperConfig) -> BiEncoder:
    """Return the average of word vectors: those of a static model, or those that the encoder begins with."""
    if config.static is not None:
        return BiEncoder.load(config.static, config.device, "float32")
    encoder = BiEncoder.load(model, "cpu", "float32")
    words = encoder.network.encoder.table
    if words is None:
        raise InputError(f"{model} has no word vectors to average; name a static model with --static.")
    return static_model(encoder, words.weight.detach().float())


def _metrics(model: Any, kind: str, data: Any, seed: int) -> dict[str, float]:
    """Measure without intervals: the seeds tell the spread."""
    if kind_of(model) not in KINDS[kind].main:
        return {}
    found = KINDS[kind].evaluate(model, data, Settings(seed=seed)).metrics
    return {name: round(100 * value, 2) for name, value in found.items() if math.isfinite(value)}


def _stage_name(stage: Stage) -> str:
    inputs = "" if stage.concatenation is None else f".{CONCATENATIONS.index(stage.concatenation)}"
    return f"{stage.data}.{stage.objective}{inputs}"


def _done(output: Path) -> Path:
    return output.with_name(f"{output.name}.done")
