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
from typing import Any, TypeVar, overload

import torch

from munjang import __version__
from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.objects import is_held, is_stream
from munjang.engine import tuning
from munjang.errors import InputError
from munjang.evaluation import Settings, check_model, evaluate
from munjang.evaluation import prepare as prepare_evaluation
from munjang.evaluation.kinds.base import kind_of
from munjang.evaluation.report import shown
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.sparse_encoder import SparseEncoder
from munjang.training.card import write_card
from munjang.training.config import TrainConfig, deciding
from munjang.training.datasets import Dataset, PreparedDataset
from munjang.training.draws import notes, num_draws, prepare_all
from munjang.training.loop import Loop
from munjang.training.lora import add_adapters
from munjang.training.process_group import ProcessGroup
from munjang.training.report import write_report
from munjang.training.run import Run, events, folder_of
from munjang.training.trainee import Holder, Trainee

KINDS = {"bi": BiEncoder, "cross": CrossEncoder, "late": MultiVectorEncoder, "sparse": SparseEncoder}
Model = TypeVar("Model", bound=Holder)  # what is trained is what is returned
Data = Any  # a name, an object with rows, Examples, a Dataset or several


@overload
def train(
    model: Model,
    data: Data,
    objective: str = ...,
    config: TrainConfig | None = ...,
    options: Mapping[str, Any] | None = ...,
    reading: Mapping[str, Any] | None = ...,
    watch: Callable[[Loop], None] | None = ...,
) -> Model: ...
@overload
def train(
    model: str | os.PathLike[str],
    data: Data,
    objective: str = ...,
    config: TrainConfig | None = ...,
    options: Mapping[str, Any] | None = ...,
    reading: Mapping[str, Any] | None = ...,
    watch: Callable[[Loop], None] | None = ...,
) -> Holder: ...
def train(
    model: Holder | str | os.PathLike[str],
    data: Data,
    objective: str = "classification",
    config: TrainConfig | None = None,
    options: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    watch: Callable[[Loop], None] | None = None,
) -> Holder:
    """Train a bi-encoder, cross-encoder, late-interaction or sparse model in place, and return it.

    `data` is a file, a DataFrame, a list of tuples or of dicts, a `datasets.Dataset`, a function that yields such rows
    (data larger than memory), ready Examples, or a list of Dataset, each with an objective of its own. `options` are
    those of the objective (margin=1.0), `reading` those of the data (score_range=(0, 5)). With `config.output` the
    model, a report and the checkpoints to resume from are written there. `watch` is given the loop before its first
    update, to set `on_update` and `on_log`.

    Returns the model it was given, or the one that it loaded. Raises InputError for data that doesn't fit the
    objective or an unknown option, CheckpointError for an output folder that holds other files.

    >>> model = BiEncoder.load("ko-en-small", dtype="float32")
    >>> before = model.similarity("The build is red.", "All tests pass.")
    >>> rows = [("The build is red.", "The tests fail.", 1.0), ("The build is red.", "All tests pass.", 0.0)]
    >>> config = TrainConfig(epochs=3, batch_size=2, learning_rate=1e-4, quiet=True)
    >>> train(model, rows, "regression", config).similarity("The build is red.", "All tests pass.") < before
    True
    """
    config = config or TrainConfig()
    datasets = _datasets(data, objective, options, reading)
    processes = ProcessGroup(config.device)
    holder = _load(os.fspath(model), processes.device) if isinstance(model, (str, os.PathLike)) else model
    output = None if config.output is None else Path(config.output)
    holds_folder = output is not None and processes.is_main
    devices = [processes.device] if processes.device.type == "cuda" else []
    folder = Run(output) if holds_folder and output is not None else nullcontext()
    with folder as run, torch.random.fork_rng(devices), tuning.paused():
        _train(holder, datasets, config, processes, run, output, watch)
    return holder


def _train(
    holder: Holder,
    datasets: list[Dataset],
    config: TrainConfig,
    processes: ProcessGroup,
    run: Run | None,
    output: Path | None,
    watch: Callable[[Loop], None] | None,
) -> None:
    if run is not None:
        run.expect(config.resume)
    check_evaluations(holder, config.evaluate)
    trainee = Trainee(holder, processes.device, config)
    cache = None if output is None else folder_of(output) / "cache"
    prepared = prepare_all(datasets, trainee, config, cache)
    if processes.is_main and not config.quiet:
        for note in notes(prepared):
            print(note, file=sys.stderr)
    if config.lora_rank is not None:
        torch.manual_seed(config.seed)
        add_adapters(trainee.network, config.lora_rank)
    per_epoch = max(num_draws(prepared, config) / config.accumulate, 1)
    num_updates = config.max_steps or max(math.ceil(config.epochs * per_epoch), 1)
    loop = Loop(trainee, prepared, processes, config, num_updates)
    loop.run = run
    loop.on_log = _listener(run, config)
    if config.evaluate:
        loop.evaluate = lambda snapshot: _evaluate(snapshot, config.evaluate)
    _begin(loop, run, _settings(holder, prepared, config, num_updates, processes.world_size), config, processes)
    if watch is not None:
        watch(loop)
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
        write_card(output, holder, prepared, run, config)
        write_report(run.folder / "report.html", run, config)
    processes.barrier()


def _begin(
    loop: Loop, run: Run | None, settings: dict[str, object], config: TrainConfig, processes: ProcessGroup
) -> None:
    """Start a new run, or resume a stopped one, in the same way in all processes."""
    resumed: Any = None
    problem: Exception | None = None
    if run is not None:
        try:
            if config.resume:
                run.check(settings)
                resumed = run.newest()
                run.cut_log(0 if resumed is None else resumed[1]["step"])
            else:
                run.begin(settings)
        except Exception as error:  # sent to the other processes, which would wait for ever
            problem = error
    problem, state = processes.broadcast_object((problem, None if resumed is None else resumed[1]))
    if problem is not None:
        raise problem
    if state is not None:
        loop.restore(processes.broadcast_tensors(None if resumed is None else resumed[0]), state)
    else:  # every process has drawn other heads
        processes.broadcast([parameter for _, parameter in loop.optimizer.named])


def _settings(
    holder: Holder, datasets: Sequence[PreparedDataset], config: TrainConfig, num_updates: int, world_size: int
) -> dict[str, object]:
    """Return the settings that a resumed run must have in common with the stopped one."""
    return {
        "model": holder.fingerprint,
        "data": {
            f"{at} {dataset.name}": {
                "rows": dataset.num_rows,
                "hash": dataset.fingerprint,
                "objective": dataset.objective_name,
                "batch_size": dataset.batch_size,
                "sampler": dataset.sampler_name,
                **dataset.settings,
                "head": {name: list(value.shape) for name, value in dataset.objective.state_dict().items()},
            }
            for at, dataset in enumerate(datasets)
        },
        "config": deciding(config),
        "num_updates": num_updates,
        "processes": world_size,
        "version": __version__,
    }


def _listener(run: Run | None, config: TrainConfig) -> Callable[[dict[str, Any]], None]:
    """Return the function that every log line goes to, which prints scores and writes events and report."""
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
    """Print the main score of each evaluated file."""
    if "evaluation" in line:
        scores = ", ".join(
            f"{name} {report['main']} {shown(report['main'], report['metrics'][report['main']])}"
            for name, report in line["evaluation"]["on"].items()
        )
        clear = "\r\x1b[K" if sys.stderr.isatty() else ""  # the progress bar's line, which is drawn again below
        print(f"{clear}update {line['step']:,}: {scores}", file=sys.stderr)


def _evaluate(snapshot: Any, sources: Sequence[str]) -> dict[str, Any]:
    """Score every file; the first one's main score decides which weights are best."""
    reports = [evaluate(snapshot, source) for source in sources]
    by_dataset = {
        report.dataset: {"kind": report.kind, "main": report.main, "metrics": report.metrics} for report in reports
    }
    return {"main": reports[0].metrics[reports[0].main], "name": reports[0].dataset, "on": by_dataset}


def check_evaluations(holder: Holder, sources: Sequence[str]) -> None:
    """Refuse a file that can't be evaluated on before training, not after an epoch."""
    for source in sources:
        kind, data = prepare_evaluation(source, None, Settings())
        check_model(kind, kind_of(holder), data)


def _datasets(
    data: Data, objective: str, options: Mapping[str, Any] | None, reading: Mapping[str, Any] | None
) -> list[Dataset]:
    if isinstance(data, Dataset):
        return [data]
    if is_stream(data) or is_held(data):
        return [Dataset(data=data, objective=objective, options=options or {}, reading=reading or {})]
    if isinstance(data, (list, tuple)):
        if not data or not all(isinstance(dataset, Dataset) for dataset in data):
            raise InputError("Several datasets are given as a list of Dataset(data=..., objective=...).")
        return list(data)
    source = data if isinstance(data, Examples) else os.fspath(data)
    return [Dataset(data=source, objective=objective, options=options or {}, reading=reading or {})]


def _load(path: str, device: torch.device) -> Holder:
    from munjang import checkpoint

    kind: Any = KINDS[checkpoint.kind(path)]
    model: Holder = kind.load(path, device=str(device), dtype="float32")
    return model
