"""Evaluation: measure models on data; one file per kind.

from munjang import BiEncoder, evaluate
print(evaluate(BiEncoder.load(), "stsb-test.tsv"))
"""

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

from munjang.errors import InputError, TruncationWarning, unknown
from munjang.evaluation.kinds import KINDS
from munjang.evaluation.kinds.base import EvaluateOptions, Kind, Measured, Settings, kind_of
from munjang.evaluation.metrics.bootstrap import draw, interval
from munjang.evaluation.recognise import recognise
from munjang.evaluation.report import Report

__all__ = [
    "KINDS",
    "Kind",
    "Measured",
    "Report",
    "Settings",
    "check_model",
    "dataset_name",
    "evaluate",
    "measure",
    "prepare",
]


def evaluate(model: Any, data: Any, kind: str | None = None, **options: Unpack[EvaluateOptions]) -> Report:
    """Measure a BiEncoder or CrossEncoder on a file, a folder or Examples.

    `kind` is a name in KINDS (docs/guides/evaluate.md has a table); None recognises it by what the data holds.
    `options` are the fields of `Settings`: columns (texts, label, score), score_range, max_rows, train, first_stage,
    rerank_weight, prompts...

    Returns a Report; raises InputError for data that fits no kind, or an unknown option.

    >>> from munjang import BiEncoder
    >>> rows = [("A cat sleeps.", "A kitten naps.", 5.0), ("A cat sleeps.", "Shares fell.", 0.0)]
    >>> evaluate(BiEncoder.load(), rows, kind="sts").main
    'spearman_cosine'
    """
    names = [field.name for field in fields(Settings)]
    for name in options:
        if name not in names:
            raise unknown("option of evaluate", name, names)
    settings = Settings(**options)
    kind_of(model)  # anything else is refused before the data is read
    return measure(model, *prepare(data, kind, settings), settings)


def prepare(data: Any, kind: str | None, settings: Settings) -> tuple[str, Any]:
    """Return the kind, and the data that its `evaluate` takes; needs no model and no torch.

    Raises InputError for an unknown kind, a setting out of its range, or data that fits no kind.

    >>> rows = [("A cat sleeps.", "A kitten naps.", 5.0), ("A cat sleeps.", "Shares fell.", 0.0)]
    >>> kind, data = prepare(rows, None, Settings())
    >>> kind, len(data)
    ('sts', 2)
    """
    if kind is not None and kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    for name in ("max_rows", "max_train_rows", "candidates"):
        limit = getattr(settings, name)
        if limit is not None and limit < 1:
            raise InputError(f"{name} must be at least 1, not {limit}.")
    if settings.rerank_weight is not None and not 0 <= settings.rerank_weight <= 1:
        raise InputError(f"rerank_weight must be between 0 and 1, not {settings.rerank_weight}.")
    if kind is None:
        kind, data = recognise(data, settings)
    return kind, KINDS[kind].read(data, settings)


def measure(model: Any, kind: str, data: Any, settings: Settings, name: str | None = None) -> Report:
    """Measure a model on what `prepare` returned; the report calls it `name`.

    Raises InputError for a model that this kind can't measure.

    >>> from munjang import BiEncoder
    >>> rows = [("A cat sleeps.", "A kitten naps.", 5.0), ("A cat sleeps.", "Shares fell.", 0.0)]
    >>> measure(BiEncoder.load(), *prepare(rows, "sts", Settings()), Settings()).rows
    2
    """
    main = check_model(kind, kind_of(model), data)
    if settings.long != "truncate" and kind_of(model) == "cross":
        raise InputError(f"long={settings.long!r} is for vectors; a cross-encoder cuts the longer text of a pair.")
    notes: list[str] = [note for note in getattr(data, "notes", ()) if note]
    started = time.perf_counter()
    with _noting_cuts(notes):
        found = KINDS[kind].evaluate(model, data, settings)
    seconds = time.perf_counter() - started
    draws = None if found.sample is None else draw(found.sample)
    from munjang.engine.measure import processor

    return Report(
        model=name or Path(model.model.folder).name,
        kind=kind,
        dataset=dataset_name(getattr(data, "name", None) or data.data.name),
        rows=len(data),
        metrics=found.metrics,
        main=main,
        interval=None if draws is None else interval(draws),
        draws=draws,
        seconds=round(seconds, 3),
        notes=tuple(dict.fromkeys([*notes, *found.notes])),
        machine=processor(model.device),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def check_model(kind: str, model_kind: str, data: Any = None) -> str:
    """Return the main metric for this type of model; raise an error if this kind can't measure it, or not on `data`.

    >>> check_model("sts", "bi")
    'spearman_cosine'
    """
    main = KINDS[kind].main
    if model_kind not in main:
        can = [name for name, each in KINDS.items() if model_kind in each.main]
        called = f"{model_kind}-encoder" if model_kind in ("bi", "cross") else f"{model_kind} model"
        raise InputError(f"{kind} needs vectors, and a {called} has none; it can be measured on {', '.join(can)}.")
    if kind == "nli" and model_kind == "bi" and data is not None and data.train is None:
        raise InputError("nli of a bi-encoder trains a classifier on its vectors: give its rows with --train (train=).")
    return main[model_kind]


def dataset_name(name: str | os.PathLike[str]) -> str:
    """Return the name of a dataset in reports: the file without its folders and suffixes.

    >>> dataset_name("data/sts/stsb-test.tsv.xz")
    'stsb-test'
    """
    path = Path(name)
    known = {".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".txt", ".xz", ".gz", ".bz2"}
    while path.suffix.lower() in known:
        path = path.with_suffix("")
    return path.name or str(name)


@contextmanager
def _noting_cuts(notes: list[str]) -> Iterator[None]:
    """Turn warnings of truncated texts into notes of the report; pass on all others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncationWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, TruncationWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
