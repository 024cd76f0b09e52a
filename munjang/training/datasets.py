"""What a run learns from: datasets, each with its objective, read, tokenized and ready to be made into batches."""

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.mixing import mix, turns
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.sampling import batches, shortage
from munjang.data.tokens import TokenTable
from munjang.errors import InputError, unknown
from munjang.objectives import OBJECTIVES, make, wrap
from munjang.objectives.base import Objective
from munjang.training.batches import Batches
from munjang.training.config import TrainConfig
from munjang.training.step import seed_of
from munjang.training.teachers import candidate_scores, vectors_of
from munjang.training.trainee import Trainee
from munjang.types import Ints

TARGETS = ("labels", "scores")
READING = tuple(name for name in inspect.signature(read_examples).parameters if name != "source")
# what suits an objective, where the config says nothing: texts that occur twice are false negatives; a batch without
# two of a label has no triplet
SAMPLERS = {
    **dict.fromkeys(("in_batch", "simcse", "cross_in_batch"), "no_duplicates"),
    **dict.fromkeys(("batch_all_triplet", "batch_hard_triplet", "batch_semi_hard_triplet"), "by_label"),
}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Examples and what is learned from them. `reading` holds options of `read_examples`, such as score_range."""

    data: str | Path | Examples | Sequence[str]
    objective: str = "classification"
    options: Mapping[str, Any] = field(default_factory=dict)  # of the objective
    reading: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    sampler: str | None = None
    prompts: tuple[str, ...] = ()  # in front of each column's texts
    teacher: str | BiEncoder | CrossEncoder | None = None
    guide: str | BiEncoder | None = None


@dataclass(frozen=True)
class Task:
    """A dataset, ready."""

    name: str
    objective_name: str
    objective: Objective
    batches: Batches
    batch_size: int
    sampler: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # what else of the dataset decides what is computed

    def epoch(self, seed: int, epoch: int) -> list[Ints]:
        """The rows of each batch of an epoch."""
        lengths = None
        if self.sampler == "by_length":
            lengths = np.sum([table.lengths for table in self.batches.tables], axis=0)
        found = batches(self.batches.examples, self.batch_size, self.sampler, seed, epoch, lengths=lengths)
        if not self.objective.num_sampled:
            return found
        # a last batch of one document has no other one to be compared with
        usable = [rows for rows in found if len(np.unique(self.batches.numbers[rows, 1])) > 1]
        if not usable:
            raise InputError(f"{self.name}: every batch holds one document only; nothing to compare it with.")
        return usable


@dataclass(frozen=True)
class Draw:
    """One batch of the run: where it stands, which task it is of, and its rows."""

    epoch: int
    index: int
    task: int
    rows: Ints


def prepare(dataset: Dataset, trainee: Trainee, config: TrainConfig, cache: Path | None) -> Task:
    """Read, check and tokenize a dataset, and build its objective."""
    if dataset.objective not in OBJECTIVES:
        make(dataset.objective, {})  # which says what there is
    _check_kind(dataset.objective, OBJECTIVES[dataset.objective], trainee)
    examples = read(dataset, config.evaluate if config.avoid is None else config.avoid)
    if not len(examples):
        raise InputError(f"{examples.name} has no rows.")
    facts: dict[str, Any] = dict(trainee.facts)
    vectors: dict[str, Any] = {}
    others: dict[str, str] = {}
    if examples.labels is not None:
        if examples.labels.dtype.kind not in "iub" or examples.labels.min() < 0:
            found = f"{examples.labels.dtype}, the lowest is {examples.labels.min()}"
            raise InputError(f"{examples.name}: labels are whole numbers from 0; these are {found}.")
        facts["num_labels"] = max(len(examples.label_names), int(examples.labels.max()) + 1)
    if dataset.teacher is not None:
        teacher = _teacher(dataset, trainee.device)
        if isinstance(teacher, CrossEncoder):
            examples = candidate_scores(teacher, examples)
        else:
            vectors["teacher"], others["teacher"] = vectors_of(teacher, examples, cache), teacher.fingerprint
            facts["teacher_width"] = teacher.dimension
    torch.manual_seed(seed_of(config.seed))  # of the objective's own parameters
    try:
        objective = make(dataset.objective, facts, **dataset.options)
    except TypeError as error:
        raise InputError(f"The options of {dataset.objective}, {dict(dataset.options)}, don't fit: {error}.") from None
    if dataset.guide is not None:
        guide = _guide(dataset, objective, trainee.device)
        vectors["guide"], others["guide"] = vectors_of(guide, examples, cache, normalize=True), guide.fingerprint
    if config.matryoshka:
        weights = config.matryoshka_weights or None
        objective = wrap("matryoshka", objective, facts, dims=config.matryoshka, weights=weights)
    if config.adaptive_layers:
        if trainee.encoder is None:
            raise InputError("adaptive_layers is for encoders that Munjang computes itself, layer by layer.")
        objective = wrap("adaptive_layers", objective, facts)
    _check_labels(examples, dataset.objective, objective, trainee)
    _check_scores(examples, dataset.objective, objective)
    prompts = dataset.prompts or ("",) * len(examples.texts)
    if len(prompts) != len(examples.texts):
        raise InputError(f"{examples.name} has {len(examples.texts)} text columns, but {len(prompts)} prompts.")
    tables = [
        TokenTable.build([prompt + text for text in column] if prompt else column, trainee.tokenizer, cache)
        for prompt, column in zip(prompts, examples.texts, strict=True)
    ]
    given = (examples, tables, objective.to(trainee.device), trainee.tokenizer, trainee.pad_id, vectors)
    made = Batches(*given, trainee.skips(prompts))
    sampler = dataset.sampler or config.sampler or SAMPLERS.get(dataset.objective, "random")
    size = config.batch_size if dataset.batch_size is None else dataset.batch_size
    _check_company(examples, dataset.objective, size)
    if sampler == "no_duplicates" and (told := shortage(made.numbers, size)) is not None:
        made.examples = examples.noted(told)
    settings = {"options": dict(dataset.options), "prompts": list(prompts), **others}
    return Task(examples.name, dataset.objective, made.objective, made, size, sampler, settings)


def prepare_all(datasets: Sequence[Dataset], trainee: Trainee, config: TrainConfig, cache: Path | None) -> list[Task]:
    """All datasets of a run; the model takes up the prompts that they are trained with."""
    tasks = [prepare(dataset, trainee, config, cache) for dataset in datasets]
    told = trainee.take_prompts([task.settings["prompts"] for task in tasks])
    if told is not None:
        tasks[0].batches.examples = tasks[0].batches.examples.noted(told)
    return tasks


def notes(tasks: Sequence[Task]) -> list[str]:
    """What was found out about the data, for people: rows that were dropped, how scores are read."""
    return [f"{task.name}: {note}" for task in tasks for note in task.batches.examples.notes]


def draws(tasks: Sequence[Task], config: TrainConfig, epoch: int = 0, index: int = 0) -> Iterator[Draw]:
    """The batches of the run from a place on, for ever; the same ones whenever they are asked for."""
    while True:
        lists = {(place, 0): task.epoch(seed_of(config.seed, place, 0), epoch) for place, task in enumerate(tasks)}
        sizes = [len(lists[place, 0]) for place in range(len(tasks))]
        order = mix(sizes, config.mixing, config.seed, epoch, config.temperature)
        for place, (which, turn) in enumerate(zip(order.tolist(), turns(order).tolist(), strict=True)):
            if place < index:
                continue
            again, at = divmod(turn, sizes[which])  # a small dataset may start again, in another order
            if (which, again) not in lists:
                lists[which, again] = tasks[which].epoch(seed_of(config.seed, which, again), epoch)
            some = lists[which, again]
            yield Draw(epoch, place, which, some[at % len(some)])
        epoch, index = epoch + 1, 0


def num_draws(tasks: Sequence[Task], config: TrainConfig) -> int:
    """Batches of the first epoch."""
    sizes = [len(task.epoch(seed_of(config.seed, place, 0), 0)) for place, task in enumerate(tasks)]
    return len(mix(sizes, config.mixing, config.seed, 0, config.temperature))


def read(dataset: Dataset, avoid: Sequence[str]) -> Examples:
    """The examples of a dataset, without those that share a sentence with files on which a score will be reported."""
    examples = dataset.data
    if not isinstance(examples, Examples):
        kind = OBJECTIVES[dataset.objective]
        extras = (dataset.options.get("target"), *kind.extras)  # some objectives can do with either
        wanted = [name for name in extras if name in TARGETS and dataset.teacher is None]  # else it says them
        for name in dataset.reading:
            if name not in READING:
                raise unknown("option of reading", name, READING)
        reading = {"target": wanted[0] if wanted else None, "num_texts": kind.num_texts, **dataset.reading}
        examples = read_examples(examples, **reading)
    files = [path for path in avoid if Path(path).is_file()]
    return drop_overlap(examples, [read_examples(path) for path in files]) if files else examples


def _check_kind(name: str, kind: type[Objective], trainee: Trainee) -> None:
    is_cross = kind.needs == "logits"
    if is_cross != trainee.is_cross:
        model, wanted = ("cross-encoder", "bi-encoder") if trainee.is_cross else ("bi-encoder", "cross-encoder")
        fitting = [other for other, each in OBJECTIVES.items() if (each.needs == "logits") == trainee.is_cross]
        raise InputError(f"{name} trains a {wanted}, this is a {model}; choose from {', '.join(sorted(fitting))}.")


def _check_company(examples: Examples, name: str, size: int) -> None:
    """An objective that compares rows learns nothing from one alone, unless that brings its own negatives."""
    if not OBJECTIVES[name].is_separable and len(examples.texts) < 3 and min(len(examples), size) == 1:
        what = "there is one only" if len(examples) == 1 else "batch_size is 1"
        raise InputError(f"{examples.name}: {name} compares rows of a batch with each other, and {what}; give more.")


def _check_labels(examples: Examples, name: str, objective: Objective, trainee: Trainee) -> None:
    """A cross-encoder's own head has to have a place for every label."""
    model = trainee.model
    if not isinstance(model, CrossEncoder) or examples.labels is None or "labels" not in objective.extras:
        return
    num_labels = int(examples.labels.max()) + 1
    if model.num_labels == 1 and (num_labels > 2 or name == "cross_entropy"):
        raise InputError(
            f"{examples.name} has {num_labels} labels and the model one output; create it with num_labels"
            f"{', or take cross_bce' if num_labels <= 2 else ''}."
        )
    if model.num_labels > 1 and num_labels > model.num_labels:
        raise InputError(f"{examples.name} has {num_labels} labels, the model {model.num_labels}.")
    trainee.name_labels(examples.label_names)


def _check_scores(examples: Examples, name: str, objective: Objective) -> None:
    """One score of a pair, or one of each candidate; a wrong shape would be stretched silently to fit."""
    if "scores" not in objective.extras or examples.scores is None:
        return
    num_candidates = len(examples.texts) - 1
    allowed: list[tuple[int, ...]] = [()] if num_candidates == 1 else [(num_candidates,)]
    if name in ("margin_mse", "cross_margin_mse"):
        allowed += [(num_candidates - 1,)] + ([()] if num_candidates == 2 else [])
    given = examples.scores.shape[1:]
    if given not in allowed:
        wanted = "one score a row" if num_candidates == 1 else f"{num_candidates} scores a row, one for each candidate"
        raise InputError(f"{examples.name}: {name} needs {wanted}, not {f'a list of {given[0]}' if given else 'one'}.")


def _teacher(dataset: Dataset, device: torch.device) -> BiEncoder | CrossEncoder:
    """The teacher, where this objective can learn from one of its kind."""
    assert dataset.teacher is not None
    teacher = _load(dataset.teacher, device)
    is_cross = isinstance(teacher, CrossEncoder)
    wanted = "scores" if is_cross else "teacher"
    if wanted not in OBJECTIVES[dataset.objective].extras:
        fitting = sorted(name for name, kind in OBJECTIVES.items() if wanted in kind.extras)
        given = "cross-encoder, which gives scores" if is_cross else "bi-encoder, which gives vectors"
        raise InputError(f"The teacher is a {given}; {dataset.objective} takes none. Choose from {', '.join(fitting)}.")
    if isinstance(teacher, CrossEncoder) and teacher.num_labels != 1:
        raise InputError(f"The teacher has {teacher.num_labels} labels; one that gives a single score is wanted.")
    return teacher


def _guide(dataset: Dataset, objective: Objective, device: torch.device) -> BiEncoder:
    assert dataset.guide is not None
    if "guide" not in objective.extras:
        raise InputError(f"{dataset.objective} takes no guide here; in_batch does with the option guide_margin.")
    guide = _load(dataset.guide, device)
    if not isinstance(guide, BiEncoder):
        raise InputError("The guide has to be a bi-encoder; this is a cross-encoder.")
    return guide


def _load(given: str | BiEncoder | CrossEncoder, device: torch.device) -> BiEncoder | CrossEncoder:
    if not isinstance(given, (str, os.PathLike)):
        return given
    from munjang import checkpoint

    return (CrossEncoder if checkpoint.kind(given) == "cross" else BiEncoder).load(given, device=str(device))
