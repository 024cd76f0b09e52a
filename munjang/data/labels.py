"""Classes: what a column of labels says, as numbers from 0."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from munjang.errors import InputError
from munjang.types import Ints

Label: TypeAlias = int | float | str
NLI = dict.fromkeys(("entailment", "e", "함의"), "entailment")
NLI |= dict.fromkeys(("neutral", "n", "중립"), "neutral")
NLI |= dict.fromkeys(("contradiction", "contradictory", "c", "모순"), "contradiction")
NO_AGREEMENT = "-"  # SNLI: the annotators did not agree
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


@dataclass(frozen=True)
class Classes:
    """The class of each row, and the names of the classes."""

    numbers: Ints  # -1 where the row is bad or dropped
    names: tuple[str, ...]
    dropped: frozenset[int] = frozenset()  # rows without a class
    notes: tuple[str, ...] = ()


def number_classes(values: Sequence[object], names: Sequence[str] | None, problems: dict[int, str]) -> Classes:
    """Whole numbers stay as they are, names are numbered by their order, sorted or as given in `names`.

    Bad rows are added to `problems` with a reason.

    >>> number_classes(["neutral", "entailment", "contradiction"], None, {}).numbers.tolist()
    [2, 1, 0]
    """
    distinct = {value: _plain(value) for value in values if isinstance(value, Hashable)}
    read = [distinct[value] if isinstance(value, Hashable) else None for value in values]
    dropped = frozenset(row for row, label in enumerate(read) if label == NO_AGREEMENT)
    labels = {label for label in distinct.values() if label is not None and label != NO_AGREEMENT}
    class_of, all_names, notes = _found(labels) if names is None else (_declared(labels, names), tuple(names), ())
    numbers = np.full(len(values), -1, np.int64)
    for row, label in enumerate(read):
        if label is None:
            is_blank = values[row] is None or not str(values[row]).strip()
            problems.setdefault(row, "no label" if is_blank else f"label {values[row]!r:.40} is not a class")
        elif label in class_of:
            numbers[row] = class_of[label]
        elif row not in dropped:
            allowed = ", ".join(all_names) if names else "names or whole numbers; a score is read with --score (score=)"
            problems.setdefault(row, f"label {values[row]!r:.40} is none of {allowed}")
    if dropped:
        notes = (*notes, f"{len(dropped):,} rows dropped that are labelled '-': no agreement")
    return Classes(numbers, all_names, dropped, notes)


def _plain(value: object) -> Label | None:
    """Normalise the differences between formats: 1, 1.0, True, "1" and "1.0" are the same."""
    if isinstance(value, str):
        text = value.strip()
        if not NUMBER.fullmatch(text):
            return text or None
        value = float(text) if "." in text else int(text)
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float) and np.isfinite(value):
        return int(value) if value.is_integer() else value
    return None


def _found(labels: set[Label]) -> tuple[dict[Label, int], tuple[str, ...], tuple[str, ...]]:
    """Number labels of which nothing was declared; return names and notes, too."""
    if not any(isinstance(label, str) for label in labels):
        whole = sorted(label for label in labels if isinstance(label, int))
        names = tuple(map(str, whole))
        class_of: dict[Label, int] = {label: number for number, label in enumerate(whole)}
        if whole == list(range(len(whole))):
            return class_of, names, ()
        return class_of, names, (f"labels {_short(names)} are numbered from 0 to {len(whole) - 1}",)
    folded = {label: str(label).casefold() for label in labels}
    if set(folded.values()) <= NLI.keys():
        # All three, though a small file may lack one: numbers have to be the same in every file.
        names = tuple(sorted(set(NLI.values())))
        return {label: names.index(NLI[name]) for label, name in folded.items()}, names, ()
    names = tuple(sorted(map(str, labels)))
    return {label: names.index(str(label)) for label in labels}, names, ()


def _declared(labels: set[Label], names: Sequence[str]) -> dict[Label, int]:
    """Number the labels that are among `names`: as written, in another case, as an NLI letter, or by number."""
    if len(set(names)) != len(names) or not names:
        raise InputError(f"labels= has to name each class once, not {', '.join(names) or 'nothing'}")
    numbers: dict[str, int] = {}
    for fold in (str, str.casefold, _nli):
        for number, name in enumerate(names):
            numbers.setdefault(fold(name), number)
    has_numbers = any(map(NUMBER.fullmatch, names))
    class_of: dict[Label, int] = {}
    for label in labels:
        for written in (str(label), str(label).casefold(), _nli(str(label))):
            if written in numbers:
                class_of.setdefault(label, numbers[written])
        if isinstance(label, int) and 0 <= label < len(names) and not has_numbers:
            class_of.setdefault(label, label)
    return class_of


def _nli(name: str) -> str:
    return NLI.get(name.casefold(), name)


def _short(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:4])} ... {names[-1]}"
