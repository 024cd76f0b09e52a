"""What can go wrong, as one tree.

MunjangError
├── InputError        the caller passed something that can't be used (also a ValueError)
├── CheckpointError   a model folder can't be read or written
│   └── UnsupportedModel   it can be read, but holds something we don't compute
└── MissingExtra      an optional package is needed (also an ImportError)
"""

from collections.abc import Iterable
from difflib import get_close_matches


class MunjangError(Exception):
    """Base of every error that Munjang raises on purpose."""


class InputError(MunjangError, ValueError):
    """The caller passed something that can't be used."""


class CheckpointError(MunjangError):
    """A model folder can't be read or written."""


class UnsupportedModel(CheckpointError):
    """A model folder holds an architecture, module or activation that we don't compute."""


class MissingExtra(MunjangError, ImportError):
    """An optional package is needed for this."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'munjang[{extra}]'")


def unknown(what: str, given: object, allowed: Iterable[str]) -> InputError:
    """The error for a name that is in no table: what was given, what is allowed, what was probably meant.

    >>> str(unknown("pooling", "avg", ["cls", "max", "mean"]))
    "Unknown pooling 'avg'; choose from cls, max, mean."
    """
    choices = sorted(allowed)
    close = get_close_matches(str(given), choices, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"Unknown {what} {given!r}; choose from {', '.join(choices)}.{hint}")


class TruncationWarning(UserWarning):
    """Some texts were longer than the model reads; how many, and what to do about it."""
