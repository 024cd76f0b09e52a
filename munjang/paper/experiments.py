"""The paper's experiments: tables of lines, each with its stages of training, and their sets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from munjang.evaluation.catalogue import SENTEVAL_SETS, STS_SETS

CONCATENATIONS = ("u,v", "|u-v|", "u*v", "|u-v|,u*v", "u,v,u*v", "u,v,|u-v|", "u,v,|u-v|,u*v")
AFS_SETS = ("afs-gm", "afs-gc", "afs-dp")  # one a topic
NUM_FOLDS = 10


@dataclass(frozen=True)
class Stage:
    """One training: on the rows of `data`, with an objective."""

    data: Literal["nli", "triplets", "sts", "afs", "sections"]
    objective: str
    concatenation: str | None = None


@dataclass(frozen=True)
class Line:
    """A model of a table: what it starts as, and its stages of training."""

    name: str  # key of its words in pages/words.py, without paper_
    stages: tuple[Stage, ...] = ()
    pooling: str = "mean"
    kind: Literal["bi", "cross", "static"] = "bi"
    parts: tuple[str, ...] = ("",)  # trainings whose scores are averaged: folds, or topics that are held out


@dataclass(frozen=True)
class Table:
    """Lines, measured on the same sets."""

    name: str
    lines: tuple[Line, ...]
    sets: tuple[str, ...]
    metrics: tuple[str, ...]  # what is shown of each set; the first that a model has
    number: str  # of the table in the paper
    has_average: bool = False  # over the sets


@dataclass(frozen=True)
class Language:
    """The sets of a language."""

    nli: tuple[str, ...]
    sts: tuple[str, ...]
    dev: str
    test: str
    similarity: tuple[str, ...]
    transfer: tuple[str, ...]


LANGUAGES = {
    "ko": Language(
        nli=("klue-nli-train", "kornli-train"),
        sts=("korsts-train", "klue-sts-train"),
        dev="korsts-dev",
        test="korsts-test",
        similarity=("korsts-test", "klue-sts-dev"),
        transfer=("nsmc",),
    ),
    "en": Language(
        nli=("snli-train", "mnli-train"),
        sts=("stsb-train",),
        dev="stsb-dev",
        test="stsb-test",
        similarity=STS_SETS,
        transfer=SENTEVAL_SETS,
    ),
}
SPEARMAN = ("spearman_cosine", "spearman")
PEARSON = ("pearson_cosine", "pearson")
ACCURACY = ("accuracy", "accuracy_cosine")


def tables(language: Language, sts_objective: str) -> list[Table]:
    """Return the paper's tables for a language, in the paper's order."""
    nli, sts = Stage("nli", "classification"), Stage("sts", sts_objective)
    cross_nli, cross_sts = Stage("nli", "cross_entropy"), Stage("sts", "cross_bce")
    plain = [
        Line("static", kind="static"),
        Line("untrained_cls", pooling="cls"),
        Line("untrained_mean"),
        Line("untrained_max", pooling="max"),
    ]
    on_nli = Line("nli", (nli,))
    unsupervised = [
        on_nli,
        Line("triplet", (Stage("triplets", "triplet"),)),
        Line("in_batch", (Stage("triplets", "in_batch"),)),
    ]
    supervised = [
        Line("sts", (sts,)),
        Line("nli_sts", (nli, sts)),
        Line("cross_sts", (cross_sts,), kind="cross"),
        Line("cross_nli_sts", (cross_nli, cross_sts), kind="cross"),
    ]
    pooled = [
        *(on_nli if mode == "mean" else Line(f"nli_{mode}", (nli,), mode) for mode in ("mean", "max", "cls")),
        *(
            Line("sts", (sts,)) if mode == "mean" else Line(f"sts_{mode}", (sts,), mode)
            for mode in ("mean", "max", "cls")
        ),
    ]
    joined = [
        on_nli if each == "u,v,|u-v|" else Line(f"concat_{place}", (Stage("nli", "classification", each),))
        for place, each in enumerate(CONCATENATIONS)
    ]
    made = [
        Table("similarity", (*plain, *unsupervised), language.similarity, SPEARMAN, "1", True),
        Table("supervised", tuple(supervised), (language.test,), SPEARMAN, "2"),
        Table("transfer", (*plain[:3], on_nli), language.transfer, ACCURACY, "5", True),
        Table("pooling", tuple(pooled), (language.dev, language.test), SPEARMAN, "6"),
        Table("concatenation", tuple(joined), (language.dev, language.test), SPEARMAN, "6"),
    ]
    return made if language is not LANGUAGES["en"] else [*made[:2], arguments(), sections(plain), *made[2:]]


def arguments() -> Table:
    """Return the table of arguments: ten folds within the topics, and each topic held out."""
    parts = {
        "folds": tuple(f"fold{fold}" for fold in range(NUM_FOLDS)),
        "topics": tuple(f"without-{topic}" for topic in AFS_SETS),
    }
    objectives = {"bi": "regression", "cross": "cross_bce"}
    lines = tuple(
        Line(f"afs_{kind}_{name}", (Stage("afs", objectives[kind]),), kind=kind, parts=part)  # type: ignore[arg-type]
        for name, part in parts.items()
        for kind in objectives
    )
    return Table("arguments", lines, ("afs",), SPEARMAN, "3")


def sections(plain: Iterable[Line]) -> Table:
    """Return the table of triplets of Wikipedia's sections."""
    kept = tuple(line for line in plain if line.name in ("static", "untrained_mean"))
    trained = Line("sections_triplet", (Stage("sections", "triplet"),))
    return Table("sections", (*kept, trained), ("sections-test",), ACCURACY, "4")
