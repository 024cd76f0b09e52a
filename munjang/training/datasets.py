"""The datasets of a run, each with its objective: read, tokenized and ready to be made into batches."""

import hashlib
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.files import replacing
from munjang.data.mixing import mix, turns
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.sampling import Sampler, batches, shortage
from munjang.data.tokens import TokenTable
from munjang.data.vectors import VectorBlock, write_npy
from munjang.errors import InputError, unknown
from munjang.objectives import OBJECTIVES, make, wrap
from munjang.objectives.base import Objective
from munjang.training.batches import Batches
from munjang.training.config import TrainConfig
from munjang.training.step import seed_of
from munjang.training.trainee import Trainee
from munjang.types import Floats, Ints

TARGETS = ("labels", "scores")
READ_OPTIONS = tuple(name for name in inspect.signature(read_examples).parameters if name != "source")


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Examples and the objective that learns from them. `reading` holds options of `read_examples`: score_range, ...

    The objective may be a ready one, the sampler a function as in data/sampling.py, and teacher and guide may be their
    vectors of the texts, [N, columns, D].

    Raises InputError where `train` reads it: for an unknown objective, or data that doesn't fit it.

    >>> rows = [("The build is red.", "The tests fail.", 1.0), ("The build is red.", "All tests pass.", 0.0)]
    >>> Dataset(data=rows, objective="regression", batch_size=2).objective_name
    'regression'
    """

    data: Any  # a file, several, an object with rows, or Examples
    objective: str | Objective = "classification"
    options: Mapping[str, Any] = field(default_factory=dict)  # of the objective
    reading: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    sampler: str | Sampler | None = None
    prompts: tuple[str, ...] = ()  # in front of each column's texts
    teacher: str | BiEncoder | CrossEncoder | Floats | None = None
    guide: str | BiEncoder | Floats | None = None

    @property
    def objective_name(self) -> str:
        """Return the name in OBJECTIVES, or that of the class."""
        return self.objective if isinstance(self.objective, str) else type(self.objective).__name__


@dataclass(frozen=True)
class PreparedDataset:
    """A dataset that is read, checked and tokenized, with its objective."""

    name: str
    objective_name: str
    objective: Objective
    batches: Batches
    batch_size: int
    sampler: str | Sampler
    settings: Mapping[str, Any] = field(default_factory=dict)  # the rest of what decides the result

    @property
    def sampler_name(self) -> str:
        """Return the name of the sampler, or of the function."""
        return self.sampler if isinstance(self.sampler, str) else getattr(self.sampler, "__name__", "custom")

    def epoch(self, seed: int, epoch: int) -> list[Ints]:
        """Return the rows of each batch of an epoch."""
        lengths = None
        if self.sampler == "by_length":
            lengths = np.sum([table.lengths for table in self.batches.tables], axis=0)
        drawn = batches(self.batches.examples, self.batch_size, self.sampler, seed, epoch, lengths=lengths)
        if not self.objective.num_sampled:
            return drawn
        # a last batch of one document has no other one to be compared with
        usable = [rows for rows in drawn if len(np.unique(self.batches.numbers[rows, 1])) > 1]
        if not usable:
            raise InputError(f"{self.name}: every batch holds one document only; nothing to compare it with.")
        return usable


@dataclass(frozen=True)
class Draw:
    """One batch of the run: its position, its dataset and its rows."""

    epoch: int
    index: int
    dataset: int
    rows: Ints


def prepare(dataset: Dataset, trainee: Trainee, config: TrainConfig, cache: Path | None) -> PreparedDataset:
    """Read, check and tokenize a dataset, and build its objective."""
    _check_kind(dataset.objective_name, _declared(dataset), trainee)
    examples = read(dataset, config.evaluate if config.avoid is None else config.avoid)
    if not len(examples):
        raise InputError(f"{examples.name} has no rows.")
    facts: dict[str, Any] = dict(trainee.facts)
    vectors: dict[str, Any] = {}
    fingerprints: dict[str, str] = {}
    if examples.labels is not None:
        if examples.labels.dtype.kind not in "iub" or examples.labels.min() < 0:
            actual = f"{examples.labels.dtype}, the lowest is {examples.labels.min()}"
            raise InputError(f"{examples.name}: labels are whole numbers from 0; these are {actual}.")
        facts["num_labels"] = max(len(examples.label_names), int(examples.labels.max()) + 1)
    if isinstance(dataset.teacher, np.ndarray):
        vectors["teacher"], facts["teacher_width"] = dataset.teacher, dataset.teacher.shape[-1]
    elif dataset.teacher is not None:
        teacher = _teacher(dataset, trainee.device)
        if isinstance(teacher, CrossEncoder):
            examples = candidate_scores(teacher, examples)
        else:
            vectors["teacher"], fingerprints["teacher"] = vectors_of(teacher, examples, cache), teacher.fingerprint
            facts["teacher_width"] = teacher.dimension
    objective = _objective(dataset, facts, config.seed)
    if isinstance(dataset.guide, np.ndarray):
        vectors["guide"] = dataset.guide
    elif dataset.guide is not None:
        guide = _guide(dataset, objective, trainee.device)
        vectors["guide"] = vectors_of(guide, examples, cache, normalize=True)
        fingerprints["guide"] = guide.fingerprint
    if config.flops:
        if len(config.flops) > 2:
            raise InputError(
                f"flops has {len(config.flops)} weights; give one, or one of queries and one of documents."
            )
        objective = wrap("flops", objective, facts, query_weight=config.flops[0], document_weight=config.flops[-1])
    if config.matryoshka:
        weights = config.matryoshka_weights or None
        objective = wrap("matryoshka", objective, facts, dims=config.matryoshka, weights=weights)
    if config.adaptive_layers:
        if trainee.encoder is None:
            raise InputError("adaptive_layers is for encoders that Munjang computes itself, layer by layer.")
        objective = wrap("adaptive_layers", objective, facts)
    _check_labels(examples, objective, trainee)
    _check_scores(examples, dataset.objective_name, objective)
    prompts = dataset.prompts or ("",) * len(examples.texts)
    if len(prompts) != len(examples.texts):
        raise InputError(f"{examples.name} has {len(examples.texts)} text columns, but {len(prompts)} prompts.")
    tables = [
        TokenTable.build([prompt + text for text in column] if prompt else column, trainee.tokenizer, cache)
        for prompt, column in zip(prompts, examples.texts, strict=True)
    ]
    objective = objective.to(trainee.device)
    skips = trainee.skips(prompts)
    made = Batches(examples, tables, objective, trainee.tokenizer, trainee.pad_id, vectors, skips)
    sampler = dataset.sampler or config.sampler or objective.sampler
    size = config.batch_size if dataset.batch_size is None else dataset.batch_size
    _check_batch_rows(examples, dataset.objective_name, objective, size)
    if sampler == "no_duplicates" and (note := shortage(made.numbers, size)) is not None:
        made.examples = examples.noted(note)
    settings = {"options": dict(dataset.options), "prompts": list(prompts), **fingerprints}
    return PreparedDataset(examples.name, dataset.objective_name, objective, made, size, sampler, settings)


def prepare_all(
    datasets: Sequence[Dataset], trainee: Trainee, config: TrainConfig, cache: Path | None
) -> list[PreparedDataset]:
    """Prepare all datasets of a run; the model adopts the prompts that they are trained with."""
    prepared = [prepare(dataset, trainee, config, cache) for dataset in datasets]
    note = trainee.take_prompts([dataset.settings["prompts"] for dataset in prepared])
    if note is not None:
        prepared[0].batches.examples = prepared[0].batches.examples.noted(note)
    return prepared


def notes(datasets: Sequence[PreparedDataset]) -> list[str]:
    """Return messages about the data for the user: rows that were dropped, how scores are read."""
    return [f"{dataset.name}: {note}" for dataset in datasets for note in dataset.batches.examples.notes]


def draws(datasets: Sequence[PreparedDataset], config: TrainConfig, epoch: int = 0, index: int = 0) -> Iterator[Draw]:
    """Yield the batches of the run from a position on, without end; the same ones in every call."""
    while True:
        rounds = {(at, 0): dataset.epoch(seed_of(config.seed, at, 0), epoch) for at, dataset in enumerate(datasets)}
        sizes = [len(rounds[at, 0]) for at in range(len(datasets))]
        order = mix(sizes, config.mixing, config.seed, epoch, config.temperature)
        for position, (which, turn) in enumerate(zip(order.tolist(), turns(order).tolist(), strict=True)):
            if position < index:
                continue
            again, at = divmod(turn, sizes[which])  # a small dataset may start again, in another order
            if (which, again) not in rounds:
                rounds[which, again] = datasets[which].epoch(seed_of(config.seed, which, again), epoch)
            batches_of_round = rounds[which, again]
            yield Draw(epoch, position, which, batches_of_round[at % len(batches_of_round)])
        epoch, index = epoch + 1, 0


def num_draws(datasets: Sequence[PreparedDataset], config: TrainConfig) -> int:
    """Count the batches of the first epoch."""
    sizes = [len(dataset.epoch(seed_of(config.seed, at, 0), 0)) for at, dataset in enumerate(datasets)]
    return len(mix(sizes, config.mixing, config.seed, 0, config.temperature))


def read(dataset: Dataset, avoid: Sequence[str]) -> Examples:
    """Read a dataset's examples, without those that share a sentence with the files to evaluate on."""
    examples = dataset.data
    if not isinstance(examples, Examples):
        kind = _declared(dataset)
        extras = (dataset.options.get("target"), *kind.extras)  # some objectives can do with either
        wanted = [name for name in extras if name in TARGETS and dataset.teacher is None]  # else it says them
        for name in dataset.reading:
            if name not in READ_OPTIONS:
                raise unknown("option of reading", name, READ_OPTIONS)
        target = wanted[0] if wanted else None
        reading: dict[str, Any] = {"target": target, "num_texts": kind.num_texts, "split": "train", **dataset.reading}
        examples = read_examples(examples, **reading)
    files = [path for path in avoid if Path(path).is_file()]
    return drop_overlap(examples, [read_examples(path, split="test") for path in files]) if files else examples


def _declared(dataset: Dataset) -> type[Objective] | Objective:
    """Return what declares the needs of a dataset's objective: its class, or the ready objective itself."""
    if isinstance(dataset.objective, Objective):
        return dataset.objective
    if dataset.objective not in OBJECTIVES:
        make(dataset.objective, {})  # which says what there is
    return OBJECTIVES[dataset.objective]


def _objective(dataset: Dataset, facts: Mapping[str, Any], seed: int) -> Objective:
    if isinstance(dataset.objective, Objective):
        if dataset.options:
            raise InputError(f"options are for an objective by its name; this {dataset.objective_name} has its own.")
        return dataset.objective
    torch.manual_seed(seed_of(seed))  # of the objective's own parameters
    try:
        return make(dataset.objective, facts, **dataset.options)
    except TypeError as error:
        raise InputError(f"The options of {dataset.objective}, {dict(dataset.options)}, don't fit: {error}.") from None


def _check_kind(name: str, kind: type[Objective] | Objective, trainee: Trainee) -> None:
    if kind.needs not in trainee.shapes:
        wanted = {"logits": "cross-encoder", "token_vectors": "late-interaction model"}.get(kind.needs, "bi-encoder")
        fitting = sorted(other for other, cls in OBJECTIVES.items() if cls.needs in trainee.shapes)
        model = "late-interaction model" if "token_vectors" in trainee.shapes else trainee.model.info()["kind"]
        raise InputError(f"{name} trains a {wanted}, this is a {model}; choose from {', '.join(fitting)}.")


def _check_batch_rows(examples: Examples, name: str, objective: Objective, size: int) -> None:
    """Refuse batches of one row where the objective compares rows and a row has no negatives of its own."""
    if not objective.is_separable and len(examples.texts) < 3 and min(len(examples), size) == 1:
        what = "there is one only" if len(examples) == 1 else "batch_size is 1"
        raise InputError(f"{examples.name}: {name} compares rows of a batch with each other, and {what}; give more.")


def _check_labels(examples: Examples, objective: Objective, trainee: Trainee) -> None:
    """Check that a cross-encoder's head has an output for every label."""
    model = trainee.model
    if not isinstance(model, CrossEncoder) or examples.labels is None or "labels" not in objective.extras:
        return
    num_labels = int(examples.labels.max()) + 1
    if model.num_labels == 1 and (num_labels > 2 or objective.has_logit_per_label):
        raise InputError(
            f"{examples.name} has {num_labels} labels and the model one output; create it with num_labels"
            f"{', or take cross_bce' if num_labels <= 2 else ''}."
        )
    if model.num_labels > 1 and num_labels > model.num_labels:
        raise InputError(f"{examples.name} has {num_labels} labels, the model {model.num_labels}.")
    trainee.name_labels(examples.label_names)


def _check_scores(examples: Examples, name: str, objective: Objective) -> None:
    """Check for one score of a pair, or one of each candidate; a wrong shape would be broadcast silently."""
    if "scores" not in objective.extras or examples.scores is None:
        return
    num_candidates = len(examples.texts) - 1
    allowed: list[tuple[int, ...]] = [()] if num_candidates == 1 else [(num_candidates,)]
    if objective.takes_margins:
        allowed += [(num_candidates - 1,)] + ([()] if num_candidates == 2 else [])
    given = examples.scores.shape[1:]
    if given not in allowed:
        wanted = "one score a row" if num_candidates == 1 else f"{num_candidates} scores a row, one for each candidate"
        raise InputError(f"{examples.name}: {name} needs {wanted}, not {f'a list of {given[0]}' if given else 'one'}.")


def _teacher(dataset: Dataset, device: torch.device) -> BiEncoder | CrossEncoder:
    """Load the teacher, if this objective can learn from one of its kind."""
    assert dataset.teacher is not None
    assert not isinstance(dataset.teacher, np.ndarray)
    teacher = _load(dataset.teacher, device)
    is_cross = isinstance(teacher, CrossEncoder)
    wanted = "scores" if is_cross else "teacher"
    if wanted not in _declared(dataset).extras:
        fitting = sorted(name for name, kind in OBJECTIVES.items() if wanted in kind.extras)
        given = "cross-encoder, which gives scores" if is_cross else "bi-encoder, which gives vectors"
        name = dataset.objective_name
        raise InputError(f"The teacher is a {given}; {name} takes none. Choose from {', '.join(fitting)}.")
    if isinstance(teacher, CrossEncoder) and teacher.num_labels != 1:
        raise InputError(f"The teacher has {teacher.num_labels} labels; one that gives a single score is wanted.")
    return teacher


def _guide(dataset: Dataset, objective: Objective, device: torch.device) -> BiEncoder:
    assert dataset.guide is not None
    assert not isinstance(dataset.guide, np.ndarray)
    if "guide" not in objective.extras:
        raise InputError(f"{dataset.objective_name} takes no guide here; in_batch does with the option guide_margin.")
    guide = _load(dataset.guide, device)
    if not isinstance(guide, BiEncoder):
        raise InputError("The guide has to be a bi-encoder; this is a cross-encoder.")
    return guide


def _load(given: str | BiEncoder | CrossEncoder, device: torch.device) -> BiEncoder | CrossEncoder:
    if not isinstance(given, (str, os.PathLike)):
        return given
    from munjang import checkpoint

    return (CrossEncoder if checkpoint.kind(given) == "cross" else BiEncoder).load(given, device=str(device))


def vectors_of(
    model: BiEncoder, examples: Examples, cache: Path | None = None, normalize: bool | None = None
) -> Floats:
    """Return the model's vectors of all texts [N, columns, D]; cached on disk by the fingerprints of both."""
    if cache is None:
        return _encode(model, examples, normalize)
    name = hashlib.blake2b(f"{model.fingerprint} {examples.fingerprint} {normalize}".encode(), digest_size=16)
    path = cache / f"{name.hexdigest()}.npy"
    if not path.exists():
        vectors = _encode(model, examples, normalize)
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(path, path.with_name(f"{path.name}.{os.getpid()}.tmp")) as file:
            write_npy(file, iter([VectorBlock(vectors)]), len(vectors))
    cached: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    return cached


def _encode(model: BiEncoder, examples: Examples, normalize: bool | None) -> Floats:
    columns = [model.encode(column, normalize=normalize, progress=True) for column in examples.texts]
    vectors: Floats = np.stack(columns, axis=1)
    return vectors


def candidate_scores(teacher: CrossEncoder, examples: Examples) -> Examples:
    """Add a cross-encoder's logits of the first text with each of the others as scores: [N, K], or [N] for one pair."""
    if len(examples.texts) < 2:
        raise InputError(f"{examples.name} has one text column; a cross-encoder scores pairs.")
    queries, *others = examples.texts
    logits = [
        teacher.predict(list(zip(queries, other, strict=True)), activation="Identity", progress=True)
        for other in others
    ]
    scores = np.stack(logits, axis=1).astype(np.float64)
    return replace(examples, scores=scores[:, 0] if len(others) == 1 else scores)
