"""`train`: a model, data and an objective to a trained model.

from munjang import BiEncoder, TrainConfig, train
model = BiEncoder.load("path/to/a/plain/bert", dtype="float32")
train(model, "nli-train.tsv", "classification", TrainConfig(output="nli", evaluate=("sts-dev.tsv",)))
"""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from munjang import __version__
from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.engine import tuning
from munjang.errors import InputError
from munjang.evaluation import Settings, check_model, evaluate
from munjang.evaluation import prepare as prepare_evaluation
from munjang.evaluation.kinds.base import kind_of
from munjang.evaluation.report import shown
from munjang.training.card import write_card
from munjang.training.config import TrainConfig, deciding
from munjang.training.loop import Loop
from munjang.training.lora import add_adapters
from munjang.training.processes import Processes
from munjang.training.report import write_report
from munjang.training.run import Run, folder_of
from munjang.training.tasks import Dataset, Task, notes, num_draws, prepare_all
from munjang.training.tensorboard import events
from munjang.training.trainee import Holder, Trainee

Data = str | os.PathLike[str] | Examples | Dataset | Sequence[Dataset]


def train(
    model: Holder | str | os.PathLike[str],
    data: Data,
    objective: str = "classification",
    config: TrainConfig | None = None,
    options: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Holder:
    """Train a bi-encoder or cross-encoder, in place, and give it back.

    `data` is a file, ready Examples, or a list of Dataset, each with an objective of its own. `options` are those of
    the objective (margin=1.0), `reading` those of the file (score_range=(0, 5)). With `config.output` the model, a
    report and what is needed to go on after a stop are written there.
    """
    config = config or TrainConfig()
    datasets = _datasets(data, objective, options, reading)
    processes = Processes(config.device)
    holder = _load(os.fspath(model), processes.device) if isinstance(model, (str, os.PathLike)) else model
    output = None if config.output is None else Path(config.output)
    holds_folder = output is not None and processes.is_main
    devices = [processes.device] if processes.device.type == "cuda" else []
    folder = Run(output) if holds_folder and output is not None else nullcontext()
    with folder as run, torch.random.fork_rng(devices), tuning.paused():
        _train(holder, datasets, config, processes, run, output)
    return holder


def _train(
    holder: Holder,
    datasets: list[Dataset],
    config: TrainConfig,
    processes: Processes,
    run: Run | None,
    output: Path | None,
) -> None:
    if run is not None:
        run.expect(config.resume)
    check_evaluations(holder, config.evaluate)
    trainee = Trainee(holder, processes.device, config)
    cache = None if output is None else folder_of(output) / "cache"
    tasks = prepare_all(datasets, trainee, config, cache)
    if processes.is_main and not config.quiet:
        for note in notes(tasks):
            print(note, file=sys.stderr)
    if config.lora_rank is not None:
        torch.manual_seed(config.seed)
        add_adapters(trainee.network, config.lora_rank)
    per_epoch = max(num_draws(tasks, config) / config.accumulate, 1)
    num_updates = config.max_steps or max(math.ceil(config.epochs * per_epoch), 1)
    loop = Loop(trainee, tasks, processes, config, num_updates)
    loop.run = run
    loop.on_log = _listener(run, config)
    if config.evaluate:
        loop.evaluate = lambda snapshot: _evaluate(snapshot, config.evaluate)
    _begin(loop, run, _settings(holder, tasks, config, num_updates, processes.world), config, processes)
    loop(
        config.evaluate_every or max(round(per_epoch), 1),
        config.save_every or max(num_updates // 20, 1),
    )
    if loop.best_weights is not None:
        trainee.restore(loop.best_weights)
    elif loop.average is not None:
        trainee.restore(loop.average.weights)
    trainee.give_back()
    if run is not None and output is not None:
        trainee.save(output)
        write_card(output, holder, tasks, run, config)
        write_report(run.folder / "report.html", run, config)
    processes.wait()


def _begin(loop: Loop, run: Run | None, settings: dict[str, object], config: TrainConfig, processes: Processes) -> None:
    """A fresh start, or the place where an earlier run stopped, the same for all processes."""
    found: Any = None
    problem: Exception | None = None
    if run is not None:
        try:
            if config.resume:
                run.check(settings)
                found = run.newest()
                run.cut_log(0 if found is None else found[1]["step"])
            else:
                run.begin(settings)
        except Exception as error:  # told to the others, which would wait for ever
            problem = error
    problem, state = processes.tell((problem, None if found is None else found[1]))
    if problem is not None:
        raise problem
    if state is not None:
        loop.restore(processes.tell_tensors(None if found is None else found[0]), state)
    else:  # a head that was drawn in every process is another one in each
        processes.share([parameter for _, parameter in loop.optimizer.named])


def _settings(
    holder: Holder, tasks: Sequence[Task], config: TrainConfig, num_updates: int, world: int
) -> dict[str, object]:
    """What a run that goes on has to share with the one that was stopped."""
    return {
        "model": holder.fingerprint,
        "data": {
            f"{place} {task.name}": {
                "rows": len(task.batches),
                "hash": task.batches.examples.fingerprint,
                "objective": task.objective_name,
                "batch_size": task.batch_size,
                "sampler": task.sampler,
                **task.settings,
                "head": {name: list(value.shape) for name, value in task.objective.state_dict().items()},
            }
            for place, task in enumerate(tasks)
        },
        "config": deciding(config),
        "num_updates": num_updates,
        "processes": world,
        "version": __version__,
    }


def _listener(run: Run | None, config: TrainConfig) -> Callable[[dict[str, Any]], None]:
    """What is done with every line of the log: TensorBoard's events; after an evaluation its scores and the report."""
    say = (lambda line: None) if config.quiet or sys.stderr is None else _say
    if run is None:
        return say
    write = events(run.folder) if config.tensorboard else None

    def listen(line: dict[str, Any]) -> None:
        say(line)
        if write is not None:
            write(line)
        if "evaluation" in line:
            write_report(run.folder / "report.html", run, config)

    return listen


def _say(line: dict[str, Any]) -> None:
    """The main score of each file of an evaluation, for who waits."""
    if "evaluation" in line:
        scores = ", ".join(
            f"{name} {report['main']} {shown(report['main'], report['metrics'][report['main']])}"
            for name, report in line["evaluation"]["on"].items()
        )
        clear = "\r\x1b[K" if sys.stderr.isatty() else ""  # the line of the progress, which comes again below
        print(f"{clear}update {line['step']:,}: {scores}", file=sys.stderr)


def _evaluate(snapshot: Any, sources: Sequence[str]) -> dict[str, Any]:
    """Scores on every file; the first one's main score decides which weights are best."""
    reports = [evaluate(snapshot, source) for source in sources]
    each = {report.dataset: {"kind": report.kind, "main": report.main, "metrics": report.metrics} for report in reports}
    return {"main": reports[0].metrics[reports[0].main], "name": reports[0].dataset, "on": each}


def check_evaluations(holder: Holder, sources: Sequence[str]) -> None:
    """Refuse a file that can't be evaluated on now, not after an epoch."""
    for source in sources:
        check_model(prepare_evaluation(source, None, Settings())[0], kind_of(holder))


def _datasets(
    data: Data, objective: str, options: Mapping[str, Any] | None, reading: Mapping[str, Any] | None
) -> list[Dataset]:
    if isinstance(data, Dataset):
        return [data]
    if isinstance(data, (list, tuple)):
        if not data or not all(isinstance(each, Dataset) for each in data):
            raise InputError("Several datasets are given as a list of Dataset(data=..., objective=...).")
        return list(data)
    source = data if isinstance(data, Examples) else os.fspath(data)  # type: ignore[arg-type]  # the rest was taken above
    return [Dataset(data=source, objective=objective, options=options or {}, reading=reading or {})]


def _load(path: str, device: torch.device) -> Holder:
    from munjang import checkpoint

    kind: Any = CrossEncoder if checkpoint.kind(path) == "cross" else BiEncoder
    model: Holder = kind.load(path, device=str(device), dtype="float32")
    return model
