"""Options of objectives, checked where they are given."""

from collections.abc import Mapping
from typing import TypeVar

from munjang.errors import InputError, unknown

Entry = TypeVar("Entry")


def choose(what: str, given: str, table: Mapping[str, Entry]) -> Entry:
    """The entry of a table, or an error with all of them.

    >>> choose("sign", "minus", {"plus": 1, "minus": -1})
    -1
    """
    if given not in table:
        raise unknown(what, given, table)
    return table[given]


def positive(name: str, given: float) -> float:
    """A number over zero, or an error."""
    if not 0 < given < float("inf"):
        raise InputError(f"{name} is {given}; it has to be a number over 0.")
    return given
