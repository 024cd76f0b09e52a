"""A dataset with its objective: read, tokenized and ready to be made into batches."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.sampling import Sampler, batches, shortage
from munjang.data.tokens import TokenTable
from munjang.errors import InputError, unknown
from munjang.objectives import OBJECTIVES, make, wrap
from munjang.objectives.base import Objective
from munjang.training.batches import Batches
from munjang.training.config import TrainConfig
from munjang.training.step import seed_of
from munjang.training.teachers import candidate_scores, load_guide, load_teacher, vectors_of
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

    data: Any  # a file, several, an object with rows, Examples, or a function that yields rows
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

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return len(self.batches)

    @property
    def fingerprint(self) -> str:
        """Hash all rows."""
        return self.batches.examples.fingerprint

    def num_batches(self, seed: int) -> int:
        """Count the batches of the first epoch."""
        return len(self.epoch(seed, 0))

    def epoch(self, seed: int, epoch: int) -> list[Ints]:
        """Return the rows of each batch of an epoch."""
        return self.rows_of(self.batches, seed, epoch)

    def rows_of(self, made: Batches, seed: int, epoch: int) -> list[Ints]:
        """Return the rows of each batch of these examples."""
        lengths = None
        if self.sampler == "by_length":
            lengths = np.sum([table.lengths for table in made.tables], axis=0)
        drawn = batches(made.examples, self.batch_size, self.sampler, seed, epoch, lengths=lengths)
        if not self.objective.num_sampled:
            return drawn
        # a last batch of one document has no other one to be compared with
        usable = [rows for rows in drawn if len(np.unique(made.numbers[rows, 1])) > 1]
        if not usable:
            raise InputError(f"{self.name}: every batch holds one document only; nothing to compare it with.")
        return usable


class Maker:
    """The objective of a dataset, and how its examples become batches: by the models that it learns from."""

    def __init__(self, dataset: Dataset, examples: Examples, trainee: Trainee, config: TrainConfig) -> None:
        self.dataset, self.trainee, self.config = dataset, trainee, config
        facts: dict[str, Any] = dict(trainee.facts)
        if examples.labels is not None and len(examples):
            if examples.labels.dtype.kind not in "iub" or examples.labels.min() < 0:
                actual = f"{examples.labels.dtype}, the lowest is {examples.labels.min()}"
                raise InputError(f"{examples.name}: labels are whole numbers from 0; these are {actual}.")
            facts["num_labels"] = max(len(examples.label_names), int(examples.labels.max()) + 1)
        self.teacher: BiEncoder | CrossEncoder | Floats | None = dataset.teacher  # type: ignore[assignment]
        if isinstance(dataset.teacher, np.ndarray):
            facts["teacher_width"] = dataset.teacher.shape[-1]
        elif dataset.teacher is not None:
            self.teacher = load_teacher(dataset.teacher, dataset.objective_name, declared(dataset), trainee.device)
            if isinstance(self.teacher, BiEncoder):
                facts["teacher_width"] = self.teacher.dimension
        objective = _objective(dataset, facts, config.seed)
        self.guide: BiEncoder | Floats | None = dataset.guide  # type: ignore[assignment]
        if dataset.guide is not None and not isinstance(dataset.guide, np.ndarray):
            self.guide = load_guide(dataset.guide, dataset.objective_name, objective, trainee.device)
        self.objective = self._wrapped(objective, facts)
        self.prompts = dataset.prompts or ("",) * len(examples.texts)
        if len(self.prompts) != len(examples.texts):
            raise InputError(
                f"{examples.name} has {len(examples.texts)} text columns, but {len(self.prompts)} prompts."
            )
        self.sampler = dataset.sampler or config.sampler or self.objective.sampler
        self.batch_size = config.batch_size if dataset.batch_size is None else dataset.batch_size

    @property
    def settings(self) -> dict[str, Any]:
        """Return what decides the result beside the examples and the objective."""
        models = {"teacher": self.teacher, "guide": self.guide}
        fingerprints = {name: model.fingerprint for name, model in models.items() if isinstance(model, BiEncoder)}
        return {"options": dict(self.dataset.options), "prompts": list(self.prompts), **fingerprints}

    def __call__(self, examples: Examples, cache: Path | None = None) -> Batches:
        """Check, score and tokenize examples; `cache` keeps tokens and vectors for later runs."""
        trainee, vectors = self.trainee, dict[str, Any]()
        if isinstance(self.teacher, CrossEncoder):
            examples = candidate_scores(self.teacher, examples)
        elif self.teacher is not None:
            vectors["teacher"] = _vectors(self.teacher, examples, cache, None)
        if self.guide is not None:
            vectors["guide"] = _vectors(self.guide, examples, cache, True)
        _check_labels(examples, self.objective, trainee)
        _check_scores(examples, self.dataset.objective_name, self.objective)
        gpu = trainee.device if trainee.device.type == "cuda" else None
        tables = [
            TokenTable.build([prompt + text for text in column] if prompt else column, trainee.tokenizer, cache, gpu)
            for prompt, column in zip(self.prompts, examples.texts, strict=True)
        ]
        skips = trainee.skips(self.prompts)
        return Batches(examples, tables, self.objective, trainee.tokenizer, trainee.pad_id, vectors, skips)

    def _wrapped(self, objective: Objective, facts: Mapping[str, Any]) -> Objective:
        config = self.config
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
            if self.trainee.encoder is None:
                raise InputError("adaptive_layers is for encoders that Munjang computes itself, layer by layer.")
            objective = wrap("adaptive_layers", objective, facts)
        return objective.to(self.trainee.device)


def _vectors(given: BiEncoder | Floats, examples: Examples, cache: Path | None, normalize: bool | None) -> Floats:
    """Return vectors that are given, or those of a model."""
    return given if isinstance(given, np.ndarray) else vectors_of(given, examples, cache, normalize)


def prepare(dataset: Dataset, trainee: Trainee, config: TrainConfig, cache: Path | None) -> PreparedDataset:
    """Read, check and tokenize a dataset, and build its objective."""
    check_kind(dataset.objective_name, declared(dataset), trainee)
    examples = read(dataset, config.avoided)
    if not len(examples):
        raise InputError(f"{examples.name} has no rows.")
    maker = Maker(dataset, examples, trainee, config)
    made = maker(examples, cache)
    check_batch_rows(examples, dataset.objective_name, maker.objective, maker.batch_size)
    if maker.sampler == "no_duplicates" and (note := shortage(made.numbers, maker.batch_size)) is not None:
        made.examples = made.examples.noted(note)
    return PreparedDataset(
        *(examples.name, dataset.objective_name, maker.objective, made, maker.batch_size, maker.sampler, maker.settings)
    )


def read(dataset: Dataset, avoid: Sequence[str]) -> Examples:
    """Read a dataset's examples, without those that share a sentence with the files to evaluate on."""
    examples = dataset.data
    if not isinstance(examples, Examples):
        examples = read_examples(examples, **reading_of(dataset))
    others = held_out(avoid)
    return drop_overlap(examples, others) if others else examples


def reading_of(dataset: Dataset) -> dict[str, Any]:
    """Return how a dataset is read: as its objective needs it, and as is asked for."""
    kind = declared(dataset)
    extras = (dataset.options.get("target"), *kind.extras)  # some objectives can do with either
    wanted = [name for name in extras if name in TARGETS and dataset.teacher is None]  # else it says them
    for name in dataset.reading:
        if name not in READ_OPTIONS:
            raise unknown("option of reading", name, READ_OPTIONS)
    target = wanted[0] if wanted else None
    return {"target": target, "num_texts": kind.num_texts, "split": "train", **dataset.reading}


def held_out(avoid: Sequence[str]) -> list[Examples]:
    """Read the files that training must not share a sentence with."""
    return [read_examples(path, split="test") for path in avoid if Path(path).is_file()]


def declared(dataset: Dataset) -> type[Objective] | Objective:
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


def check_kind(name: str, kind: type[Objective] | Objective, trainee: Trainee) -> None:
    if kind.needs not in trainee.shapes:
        wanted = {"logits": "cross-encoder", "token_vectors": "late-interaction model"}.get(kind.needs, "bi-encoder")
        fitting = sorted(other for other, cls in OBJECTIVES.items() if cls.needs in trainee.shapes)
        model = "late-interaction model" if "token_vectors" in trainee.shapes else trainee.model.info()["kind"]
        raise InputError(f"{name} trains a {wanted}, this is a {model}; choose from {', '.join(fitting)}.")


def check_batch_rows(examples: Examples, name: str, objective: Objective, size: int) -> None:
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
