"""Suites: well-known collections of sets by one name, from a folder of published files or through mteb.

munjang evaluate --suite sts --data folder-with-the-sets
"""

from dataclasses import dataclass, replace
from typing import Any

from munjang.errors import InputError, unknown
from munjang.evaluation.catalogue import SENTEVAL_SETS, SETS, STS_SETS, Folder
from munjang.evaluation.kinds import KINDS
from munjang.evaluation.kinds.base import Settings
from munjang.evaluation.kinds.probe import NUM_FOLDS, Split


@dataclass(frozen=True)
class Suite:
    """Sets of our catalogue, tasks of mteb, or one of its benchmarks."""

    purpose: str
    sets: tuple[str, ...] = ()  # from a folder
    tasks: tuple[str, ...] = ()  # of mteb, where no folder is given
    benchmark: str | None = None  # of mteb


SUITES = {
    "sts": Suite(
        "STS12 to STS16, STSb, SICK-R, and in Korean KorSTS and KLUE-STS",
        (*STS_SETS, "korsts-test", "klue-sts-dev"),
        (*(f"STS{year}" for year in range(12, 17)), "STSBenchmark", "SICK-R", "KorSTS", "KLUE-STS"),
    ),
    "senteval": Suite("SentEval's seven tasks, and NSMC in Korean", (*SENTEVAL_SETS, "nsmc")),
    "kor": Suite("Korean tasks of MTEB", benchmark="MTEB(kor, v2)"),
    "nano": Suite("NanoBEIR: thirteen small sets of retrieval", benchmark="NanoBEIR"),
}
Prepared = list[tuple[str, str, Any]]  # the name of a set, its kind and its data


def suite_of(name: str) -> Suite:
    """Return a suite of SUITES."""
    if name not in SUITES:
        raise unknown("suite", name, SUITES)
    return SUITES[name]


def read_suite(name: str, folder: Folder, settings: Settings) -> tuple[Prepared, list[str]]:
    """Read the sets of a suite that are in a folder; return also which are not, and where to get them."""
    keys = suite_of(name).sets
    missing = folder.missing([*keys, *(train for key in keys if folder.has(key) and (train := SETS[key].train))])
    there = [key for key in keys if folder.has(key) and folder.has(SETS[key].train or key)]
    if not there:
        raise InputError("\n".join([f"{folder.path} has no set of the suite {name!r}.", *missing]))
    return [(SETS[key].title, SETS[key].kind, read_set(key, folder, settings)) for key in there], missing


def read_set(key: str, folder: Folder, settings: Settings) -> Any:
    """Read a set as its kind of evaluation needs it; one without rows to train on is measured in folds."""
    known = SETS[key]
    examples = folder.examples(key, settings.max_rows)
    examples = examples.noted("file: " + ", ".join(path.name for path in folder.paths(key)))
    train = None if known.train is None else folder.examples(known.train, settings.max_train_rows)
    folds = settings.folds or NUM_FOLDS if known.kind == "classification" and train is None else None
    data = KINDS[known.kind].read(examples, Settings(train=train, folds=folds))
    return replace(data, is_symmetric=True) if isinstance(data, Split) and known.is_symmetric else data
