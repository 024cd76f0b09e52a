"""All errors, as one tree.

MunjangError                 Base of every error that Munjang raises on purpose
├── InputError               The caller passed something that can't be used (also ValueError)
│   ├── UnknownArgument      A function has no argument of that name (also TypeError)
│   └── TooManyPairs         More pairs reach the threshold than can be held; in munjang.tasks
├── CheckpointError          A model folder can't be read or written
│   ├── NotFinite            A model computes values that are not numbers
│   └── UnsupportedModel     A model folder holds an architecture, module or activation that we don't compute
├── MissingExtra             An optional package is needed for this (also ImportError)
├── NotCovered               A feature of sentence-transformers that munjang.compat does not have; in munjang.compat
│   ├── NameNotCovered       A name can't be imported; in munjang.compat (also ImportError)
│   └── AttributeNotCovered  A model lacks a method or attribute; in munjang.compat (also AttributeError)
├── Unreadable               A file holds no text that can be read; in munjang.data
├── ModelMismatch            An index is opened with another model than the one that made its vectors; in munjang.index
├── Closed                   The server is shutting down; in munjang.server
├── Full                     Too much is waiting already; in munjang.server
├── Refused                  A request that gets an error for an answer; in munjang.server
└── StoreError               The engine rejected the operation or is unavailable; in munjang.stores
    └── NoSuchStore          There is no store of that name at that location; in munjang.stores (also InputError)
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class MunjangError(Exception):
    """Base of every error that Munjang raises on purpose."""


class InputError(MunjangError, ValueError):
    """The caller passed something that can't be used."""


class UnknownArgument(InputError, TypeError):
    """A function has no argument of that name; the error names ours."""


class CheckpointError(MunjangError):
    """A model folder can't be read or written."""


class NotFinite(CheckpointError):
    """A model computes values that are not numbers."""


class UnsupportedModel(CheckpointError):
    """A model folder holds an architecture, module or activation that we don't compute."""


class MissingExtra(MunjangError, ImportError):
    """An optional package is needed for this."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'munjang[{extra}]'")


def unknown(what: str, given: object, allowed: Iterable[str]) -> InputError:
    """Return the error for an unknown name: it lists the allowed names and suggests the closest one.

    >>> str(unknown("pooling", "avg", ["cls", "max", "mean"]))
    "Unknown pooling 'avg'; choose from cls, max, mean."
    """
    choices = sorted(allowed)
    return InputError(f"Unknown {what} {given!r}; choose from {', '.join(choices)}.{closest(given, choices)}")


def closest(given: object, choices: Sequence[str]) -> str:
    """Return the question whether the most similar choice was meant; empty if none is similar."""
    close = get_close_matches(str(given), choices, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


class TruncationWarning(UserWarning):
    """Some texts were longer than the model's max_length and were cut."""


class OverflowWarning(UserWarning):
    """A model computes numbers that are too large for float16, and goes over to bfloat16."""
