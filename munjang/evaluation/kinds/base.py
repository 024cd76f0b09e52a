"""Define a kind of evaluation: how its data is read, and what is measured of a model on it.    N rows, D dimension."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.metrics.bootstrap import Sample
from munjang.types import Bools, Floats
from munjang.vectors.similarity import PAIRWISE

if TYPE_CHECKING:  # what only reads needs no torch
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder
    from munjang.multi_vector_encoder import MultiVectorEncoder
    from munjang.sparse_encoder import SparseEncoder

    Model: TypeAlias = BiEncoder | CrossEncoder

Source: TypeAlias = str | os.PathLike[str] | Examples
POSITIVE_LABELS = (
    "1",
    "1.0",
    "true",
    "yes",
    "positive",
    "duplicate",
    "paraphrase",
    "equivalent",
    "relevant",
    "similar",
)


@dataclass(frozen=True)
class Settings:
    """Settings of reading and measuring; every kind takes those that concern it.

    >>> Settings(max_rows=100, score_range=(0.0, 5.0)).max_rows
    100
    """

    texts: tuple[str, ...] | None = None  # columns of the texts, else by their names
    label: str | None = None  # column of the class
    score: str | None = None  # column of the similarity
    labels: tuple[str, ...] | None = None  # names of the classes, in the order of the model's outputs
    score_range: tuple[float, float] | None = None
    format: str | None = None
    split: str = "test"  # of a folder with a file or a qrels for each split, or of a table with such a column
    max_rows: int | None = None
    train: Source | None = None  # rows that the probe is trained on
    max_train_rows: int | None = None  # so many of them, drawn by `seed`: many files are sorted by class
    folds: int | None = None  # cross-validation of the probe where there are no rows to train on; SentEval's is 10
    first_stage: "BiEncoder | None" = None  # which finds the candidates that are ranked again
    candidates: int = 100
    rerank_weight: float | None = None  # of the re-ranker in the order, 0 to 1; None: what its folder states, or 1
    prompt: str | None = None  # before texts that are compared with each other
    query_prompt: str | None = None  # None: the model's own
    document_prompt: str | None = None
    long: str = "truncate"  # what to do with texts beyond the model's limit: truncate, average, error
    seed: int = 0
    progress: bool | None = False
    by: tuple[str, ...] = ()  # ways to search an index of the corpus: words, dense, sparse, late
    sparse: "SparseEncoder | None" = None  # searches beside the model
    late: "MultiVectorEncoder | None" = None


class EvaluateOptions(TypedDict, total=False):
    """Options of `evaluate`: the fields of Settings, for editors and type checkers."""

    texts: tuple[str, ...] | None
    label: str | None
    score: str | None
    labels: tuple[str, ...] | None
    score_range: tuple[float, float] | None
    format: str | None
    split: str
    max_rows: int | None
    train: Source | None
    max_train_rows: int | None
    folds: int | None
    first_stage: "BiEncoder | None"
    candidates: int
    rerank_weight: float | None
    prompt: str | None
    query_prompt: str | None
    document_prompt: str | None
    long: str
    seed: int
    progress: bool | None
    by: tuple[str, ...]
    sparse: "SparseEncoder | None"
    late: "MultiVectorEncoder | None"


@dataclass(frozen=True)
class Measured:
    """Metrics by name, notes for their readers, and the rows behind the main metric where they can be resampled.

    >>> Measured({"accuracy": 0.75}, notes=("the rows are few",)).metrics["accuracy"]
    0.75
    """

    metrics: dict[str, float]
    notes: tuple[str, ...] = ()
    sample: Sample | None = None


@dataclass(frozen=True)
class Contents:
    """The columns and classes of some data, by which a kind of evaluation recognises it."""

    num_texts: int = 0  # text columns; 0 in a folder
    has_scores: bool = False
    has_labels: bool = False
    num_classes: int | None = None  # of the labels; None: not counted
    has_train: bool = False  # rows to train on were given too
    is_translated: bool = False  # the two columns are named after languages
    tables: frozenset[str] = frozenset()  # of a folder: qrels, duplicates


@dataclass(frozen=True)
class Kind:
    """One kind of evaluation. To add one: a file here, and a line in KINDS.

    >>> from munjang.evaluation import KINDS
    >>> dict(KINDS["sts"].main)["bi"]
    'spearman_cosine'
    """

    purpose: str  # its full name, a colon, and the data that it takes
    main: Mapping[str, str]  # the metric that stands for all, for each type of model that can be measured
    read: Callable[[Any, Settings], Any]  # a file, a folder or Examples, to what `evaluate` takes; it has a length
    evaluate: Callable[[Any, Any, Settings], Measured]
    fits: Callable[[Contents], bool] | None = None  # recognises data for it; None: it has to be named


def kind_of(model: object) -> str:
    """Return `bi`, `cross`, `late` or `sparse`."""
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder
    from munjang.multi_vector_encoder import MultiVectorEncoder
    from munjang.sparse_encoder import SparseEncoder

    kinds = {BiEncoder: "bi", CrossEncoder: "cross", MultiVectorEncoder: "late", SparseEncoder: "sparse"}
    for cls, kind in kinds.items():
        if isinstance(model, cls):
            return kind
    raise InputError(f"A BiEncoder or a CrossEncoder can be evaluated, not {type(model).__name__}; load it first.")


def encode_columns(model: "BiEncoder", columns: tuple[list[str], ...], settings: Settings) -> list[Floats]:
    """Encode all columns in one go, so that a text that occurs twice is computed once."""
    together = [text for column in columns for text in column]
    vectors = model.encode(together, prompt=settings.prompt, long=settings.long, progress=settings.progress)
    return np.split(vectors, np.cumsum([len(column) for column in columns])[:-1])


def encode_queries(model: "BiEncoder", texts: list[str], settings: Settings) -> Floats:
    """Encode queries, with the model's own prompt or the one that is set."""
    vectors: Floats = model.encode_query(
        texts, prompt=settings.query_prompt, long=settings.long, progress=settings.progress
    )
    return vectors


def encode_documents(model: "BiEncoder", texts: list[str], settings: Settings) -> Floats:
    """Encode documents, with the model's own prompt or the one that is set."""
    vectors: Floats = model.encode_document(
        texts, prompt=settings.document_prompt, long=settings.long, progress=settings.progress
    )
    return vectors


def compare_pairs(model: "Model", examples: Examples, settings: Settings) -> dict[str, Floats]:
    """Score pairs by each similarity function, as `_cosine`; a cross-encoder has its own alone, as ``."""
    first, second = examples.texts
    if kind_of(model) == "cross":
        return {"": cross_scores(model, first, second, settings)}
    a_ND, b_ND = encode_columns(model, (first, second), settings)  # type: ignore[arg-type]
    return {f"_{name}": function(a_ND, b_ND) for name, function in PAIRWISE.items()}


def cross_scores(
    model: Any, first: list[str], second: list[str], settings: Settings, activation: str | None = None
) -> Floats:
    """Score pairs by a cross-encoder with one score a pair; `activation` "Identity" gives logits."""
    if model.num_labels != 1:
        raise InputError(f"This needs one score a pair, and the cross-encoder has {model.num_labels} labels; try nli.")
    pairs = list(zip(first, second, strict=True))
    scores: Floats = model.predict(pairs, activation, prompt=settings.prompt, progress=settings.progress)
    return scores


def is_positive(examples: Examples) -> Bools:
    """Return which rows say yes: by the name of the label where it tells, else the second class."""
    labels = examples.labels
    if labels is None:
        raise InputError(f"{examples.name}: this needs a label for each row, 0 or 1; name its column with label=.")
    if len(np.unique(labels)) > 2 or len(examples.label_names) > 2:
        found = ", ".join(examples.label_names[:6]) or str(np.unique(labels)[:6].tolist())
        raise InputError(f"{examples.name}: this needs two classes, yes and no, and there are more: {found}.")
    names = [name.strip().lower() for name in examples.label_names]
    known = [place for place, name in enumerate(names) if name in POSITIVE_LABELS]
    return np.asarray(labels == (known[0] if len(known) == 1 else 1), np.bool_)
