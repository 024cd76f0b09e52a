"""Turn labels, one or several a text, into a table of yes and no.    N rows, C classes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from munjang.errors import InputError
from munjang.types import Bools

Label: TypeAlias = str | int


@dataclass(frozen=True)
class Targets:
    """The labels of each row."""

    names: tuple[Label, ...]
    has_NC: Bools
    is_multi_label: bool

    @property
    def single(self) -> list[Label]:
        """Names of labels that one row alone has."""
        return [name for name, count in zip(self.names, self.has_NC.sum(0), strict=True) if count == 1]


def read_labels(labels: Iterable[Any], num_rows: int) -> Targets:
    """Read a name or whole number for each row; or a list of them, maybe empty, where a row may have several.

    >>> read_labels(["spam", "ham", "spam"], 3).names
    ('ham', 'spam')
    """
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise InputError(f"labels should be a list, one for each text, not {type(labels).__name__}.")
    rows = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(rows) != num_rows:
        raise InputError(f"{num_rows} texts and {len(rows)} labels; every text needs one.")
    if not rows:
        raise InputError("No examples; give texts and their labels.")
    is_multi_label = isinstance(rows[0], (list, tuple, set, frozenset))
    lists = [_listed(row, value, is_multi_label) for row, value in enumerate(rows)]
    names = _names({name for each in lists for name in each})
    if len(names) < 2 and not (is_multi_label and names):
        only = f"all {num_rows} are {names[0]!r}" if names else "there are none"
        raise InputError(f"A classifier tells two labels or more apart, and {only}; give examples of others.")
    place = {name: number for number, name in enumerate(names)}
    has_NC = np.zeros((len(rows), len(names)), bool)
    for row, each in enumerate(lists):
        has_NC[row, [place[name] for name in each]] = True
    return Targets(names, has_NC, is_multi_label)


def _names(found: set[Label]) -> tuple[Label, ...]:
    if len({type(name) for name in found}) > 1:
        raise InputError("Some labels are names and some are numbers; make them all names or all whole numbers.")
    return tuple(sorted(found))  # of one type


def _listed(row: int, value: Any, is_multi_label: bool) -> Sequence[Label]:
    if isinstance(value, (list, tuple, set, frozenset)) != is_multi_label:
        raise InputError(f"Label {row} is {value!r:.40}; give one label for each text, or a list for each.")
    return [_checked(row, each) for each in value] if is_multi_label else [_checked(row, value)]


def _checked(row: int, value: Any) -> Label:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int):
        return int(value)
    what = "empty" if value is None or value == "" or str(value).isspace() or value != value else f"{value!r:.40}"
    raise InputError(f"Label {row} is {what}; a label is a name or a whole number. Drop the row, or name its label.")
