"""Options: dataclass fields that are both command-line flags and settings in Python."""

from dataclasses import MISSING, field
from typing import Any


def option(
    help: str,
    default: Any = MISSING,
    short: str | None = None,
    is_positional: bool = False,
    one_of: str | None = None,
    metavar: str | None = None,
) -> Any:
    """Declare a dataclass field that is also a command-line option; options with the same `one_of` exclude each other.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Options:
    ...     chunk_rows: int = option("rows of a chunk", default=4096)  # --chunk-rows 4096
    >>> Options()
    Options(chunk_rows=4096)
    """
    metadata = {"help": help, "short": short, "is_positional": is_positional, "one_of": one_of, "metavar": metavar}
    return field(default=default, metadata=metadata)
