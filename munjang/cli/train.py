"""munjang train MODEL DATA -o OUT: train a bi-encoder or a cross-encoder; --resume continues an interrupted run.

munjang train MODEL pairs.tsv -o OUT --objective in_batch
munjang train bert-folder nli.tsv -o nli-model --objective classification --evaluate sts-dev.tsv
munjang train --config run.toml            settings in a file, several datasets as [[datasets]]
torchrun --nproc-per-node 4 -m munjang train --config run.toml
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.configuration import checked
from munjang.cli.options import option
from munjang.errors import InputError, unknown
from munjang.training.config import TrainConfig

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.training.datasets import Dataset
    from munjang.training.trainee import Holder

# Types of the keys of [[datasets]] and of its `reading`; a list of names may also be a single name
DATASET_KEYS: dict[str, Any] = {
    **dict.fromkeys(("objective", "sampler", "teacher", "guide"), str),
    **dict.fromkeys(("data", "prompts"), tuple[str, ...]),
    **dict.fromkeys(("options", "reading"), dict),
    "batch_size": int,
}
READING_KEYS: dict[str, Any] = {
    **dict.fromkeys(("texts", "labels", "score"), tuple[str, ...]),
    **dict.fromkeys(("label", "format", "split"), str),
    "score_range": tuple[float, float],
    "max_rows": int,
}


SUMMARY_KO = "예문으로 모델 학습; 중단된 학습은 이어서"


@dataclass(frozen=True, kw_only=True)
class Options(TrainConfig):
    """Options of `munjang train`."""

    model: str | None = option(  # not needed for --objectives
        "folder or Hub name of the model to start from", default=None, is_positional=True, metavar="MODEL"
    )
    data: tuple[str, ...] = option(
        "files of examples: .csv .tsv .jsonl .parquet, also with .gz .xz .bz2; a folder; hub:owner/name",
        default=(),
        is_positional=True,
        metavar="DATA",
    )
    objective: str | None = option("training objective; `munjang train --objectives` lists them", default=None)
    objectives: bool = option("list the objectives and exit", default=False)
    set: tuple[str, ...] = option("settings of the objective, such as margin=1", default=(), metavar="KEY=VALUE")
    texts: tuple[str, ...] = option("text columns (default: recognized by name)", default=())
    label: str | None = option("label column", default=None)
    labels: tuple[str, ...] = option("names of the labels, in the order of their numbers", default=())
    score: str | None = option("score column", default=None)
    format: Literal["txt", "csv", "tsv", "json", "jsonl", "parquet"] | None = option(
        "format of the files (default: by suffix)", default=None
    )
    score_range: tuple[float, float] | None = option("lowest and highest score (default: from the data)", default=None)
    split: str = option("split to train on, of a folder or a table that has several", default="train")
    max_rows: int | None = option("read at most this many rows", default=None)
    prompts: tuple[str, ...] = option("put these before the texts, one per column", default=())
    teacher: str | None = option("model to learn vectors or scores from", default=None)
    guide: str | None = option("model that detects false negatives", default=None)
    cross: bool = option("train a new cross-encoder on the encoder of MODEL", default=False)
    late: int | None = option("train a new late-interaction model with token vectors of this dimension", default=None)
    sparse: bool = option("train MODEL as a sparse encoder (SPLADE); one without a word head gets one", default=False)
    num_labels: int | None = option("outputs of a new cross-encoder (default: from the data)", default=None)
    pooling: str | None = option("cls, mean or max, instead of the model's own", default=None)
    dry_run: bool = option("read and check everything, print what would be done, and exit", default=False)
    datasets: tuple[dict, ...] = option(  # type: ignore[type-arg]  # tables are checked in `datasets_of`
        "several datasets, each with its objective, as [[datasets]] of the file", default=()
    )


def run(options: Options) -> int:
    """Check the options, train, print where the model is."""
    if options.objectives:
        print(describe_objectives())
        return 0
    if options.output is None and not options.dry_run:
        raise InputError("Where to? Give -o OUT (output)")
    datasets = datasets_of(options, options.objective or "classification")
    return train_with(options, datasets, options.cross)


def train_with(
    options: "Any", datasets: "list[Dataset]", is_cross: bool, num_layers: int | None = None, is_over: bool = True
) -> int:
    """Train the model: the last step of `train`, `distill` and `adapt`.

    `is_over=False`: these processes will train again.
    """
    from munjang.training.train import train

    if options.dry_run:
        print(previewed(options, datasets, is_cross, num_layers))
        return 0
    model, config = _model(options, datasets, is_cross, num_layers), config_of(options)
    train(model, datasets, config=config)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from munjang.training.process_group import leave_together

        leave_together(is_over)
    if config.output is not None and _is_main() and not config.quiet:
        print(f"the model is in {config.output}, the report in {config.output}.training/report.html", file=sys.stderr)
    return 0


def previewed(options: "Any", datasets: "list[Dataset]", is_cross: bool, num_layers: int | None = None) -> str:
    """Read and check everything; return a description of what would be done."""
    from munjang.training.preview import preview

    return preview(_model(options, datasets, is_cross, num_layers), datasets, config_of(options))


def config_of(options: "Any") -> TrainConfig:
    """Return the training configuration among the options."""
    return TrainConfig(**{each.name: getattr(options, each.name) for each in fields(TrainConfig)})


def datasets_of(options: Options, objective: str) -> "list[Dataset]":
    """Return the datasets that the flags or the file describe."""
    from munjang.training.datasets import Dataset

    if options.datasets and options.data:
        raise InputError("Data is given on the command line and as [[datasets]] of the file; give one of them")
    if not options.datasets and not options.data:
        raise InputError("No data: give files, or [[datasets]] in the file of --config")
    if options.datasets and options.set:
        raise InputError("--set is for data of the command line; a table of [[datasets]] has options = {...}")
    tables: Sequence[dict[str, Any]] = options.datasets or [
        {"data": list(options.data), "options": settings(options.set)}
    ]
    made = []
    for table in tables:
        _check_table("[[datasets]]", table, DATASET_KEYS)
        if "data" not in table:
            raise InputError("A table of [[datasets]] has no data; give the name of a file, or a list of them")
        _check_table("reading of [[datasets]]", table.get("reading", {}), READING_KEYS)
        values = {"objective": objective, **table}
        values = _other_models(options, values["objective"]) | values
        values["reading"] = reading_of(options) | dict(values.get("reading", {}))
        prompts = values.get("prompts", options.prompts)
        values["prompts"] = (prompts,) if isinstance(prompts, str) else tuple(prompts)
        made.append(Dataset(**values))
    return made


def _check_table(what: str, table: dict[str, Any], hints: dict[str, Any]) -> None:
    for key, value in table.items():
        if key not in hints:
            raise unknown(f"key of {what}", key, hints)
        is_name = isinstance(value, str) and hints[key] == tuple[str, ...]
        checked(f"{key} of {what}", value, str if is_name else hints[key])


def _other_models(options: Options, objective: str) -> dict[str, str | None]:
    """Return the teacher and guide of a dataset; among several datasets, only if its objective takes them."""
    from munjang.objectives import OBJECTIVES, options_of

    if not options.datasets or objective not in OBJECTIVES:
        return {"teacher": options.teacher, "guide": options.guide}
    kind = OBJECTIVES[objective]
    takes_teacher = "teacher" in kind.extras or "scores" in kind.extras
    takes_guide = "guide_margin" in options_of(kind)
    return {
        "teacher": options.teacher if takes_teacher else None,
        "guide": options.guide if takes_guide else None,
    }


def reading_of(options: Options) -> dict[str, Any]:
    """Return the options of the reader that were set."""
    values = {
        "texts": options.texts or None,
        "label": options.label,
        "labels": options.labels or None,
        "score": options.score,
        "score_range": options.score_range,
        "max_rows": options.max_rows,
        "format": options.format,
        "split": options.split,
    }
    return {name: value for name, value in values.items() if value is not None}


def settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse KEY=VALUE strings: values are numbers, true and false, else text.

    >>> settings(["margin=0.5", "distance=cosine", "is_symmetric=true"])
    {'margin': 0.5, 'distance': 'cosine', 'is_symmetric': True}
    """
    import tomllib

    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set {pair}: expected KEY=VALUE, such as margin=1")
        try:
            values[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = value
    return values


def describe_objectives() -> str:
    """Describe every objective: what it minimizes, takes and can be set to."""
    from munjang.objectives import OBJECTIVES, options_of

    lines = []
    for name, kind in OBJECTIVES.items():
        least, most = kind.num_texts
        texts = f"{least}" if least == most else f"{least}+"
        needs = ", ".join([f"{texts} text column{'' if texts == '1' else 's'}", *kind.extras])
        first = (kind.__doc__ or "").strip().splitlines()[0]
        own = ", ".join(options_of(kind))
        lines.append(f"{name}\n    {first}\n    takes: {needs}{f'; settings: {own}' if own else ''}")
    return "\n".join(lines)


def _model(options: "Any", datasets: "list[Dataset]", is_cross: bool, num_layers: int | None) -> "Holder":
    from munjang import checkpoint

    if options.model is None:
        raise InputError("No model: give its folder or Hub name")
    model = _loaded(options, datasets, is_cross)
    if num_layers is not None:
        checkpoint.shorten(model.model, num_layers)
    return model


def _loaded(options: "Any", datasets: "list[Dataset]", is_cross: bool) -> "Holder":
    import torch

    from munjang import checkpoint
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder
    from munjang.multi_vector_encoder import MultiVectorEncoder
    from munjang.sparse_encoder import SparseEncoder
    from munjang.training.datasets import read

    is_loaded_cross = not is_cross and checkpoint.kind(options.model) == "cross"
    if options.num_labels is not None and not is_cross:
        raise InputError("num_labels is for a new cross-encoder; give --cross, or leave it out")
    if options.pooling is not None and (is_cross or is_loaded_cross):
        raise InputError("pooling is of a bi-encoder; a cross-encoder has its own head, so leave it out")
    # several processes would all load on the first GPU; training moves each copy to its own anyway
    device = "cpu" if int(os.environ.get("WORLD_SIZE", "1")) > 1 else options.device
    if is_cross:
        num_labels = options.num_labels
        if num_labels is None:
            found = [read(dataset, ()).labels for dataset in datasets if dataset.objective == "cross_entropy"]
            num_labels = max((int(labels.max()) + 1 for labels in found if labels is not None), default=1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)  # a resumed run has to start with the same head
            return CrossEncoder.create(options.model, num_labels, device, "float32")
    if is_loaded_cross:
        return CrossEncoder.load(options.model, device, "float32")
    new_late, is_sparse = getattr(options, "late", None), getattr(options, "sparse", False)
    if new_late is not None and is_sparse:
        raise InputError("--late and --sparse are two kinds of models; give one of them")
    if new_late is not None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            return MultiVectorEncoder.create(options.model, new_late, device, "float32", _texts_of(datasets))
    if is_sparse and not checkpoint.is_sparse(checkpoint.resolve(options.model)):
        return SparseEncoder.create(options.model, _texts_of(datasets), device, "float32")
    kind = "sparse" if is_sparse else checkpoint.kind(options.model)
    if kind in ("late", "sparse"):
        loader: Any = MultiVectorEncoder if kind == "late" else SparseEncoder
        loaded: Holder = loader.load(options.model, device, "float32")
        return loaded
    return BiEncoder.load(options.model, device, "float32", pooling=options.pooling)


def _texts_of(datasets: "list[Dataset]") -> list[str]:
    """Return the texts that a new head is fitted to."""
    from munjang.training.datasets import read

    return [text for dataset in datasets for column in read(dataset, ()).texts for text in column]


def _is_main() -> bool:
    return os.environ.get("RANK", "0") == "0"
