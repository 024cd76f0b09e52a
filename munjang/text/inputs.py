"""Turn what callers pass as texts and prompts into strings, or refuse it by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from munjang.errors import InputError, unknown


def is_stream(texts: object) -> bool:
    """Tell whether texts come one by one (a generator, an open file) instead of all at once."""
    return isinstance(texts, Iterator)


def as_texts(texts: object, what: str = "texts", first: int = 0) -> list[str]:
    """A list of strings from a list, tuple, numpy array, pandas or Arrow column; `first` numbers the first item."""
    values: Sequence[Any]
    if isinstance(texts, list):
        values = texts
    elif hasattr(texts, "columns"):  # its items would be the names of its columns
        raise InputError(f"The {what} should be one column, not a whole {type(texts).__name__}: table['text'].")
    elif isinstance(texts, (str, bytes, bytearray, dict, set, frozenset)) or not isinstance(texts, Iterable):
        raise InputError(f"The {what} should be a list of strings, not {_kind(texts)}.")
    elif hasattr(texts, "to_pylist"):  # an Arrow column
        values = texts.to_pylist()
    elif hasattr(texts, "tolist"):  # numpy, pandas
        values = texts.tolist()
        if not isinstance(values, list):
            raise InputError(f"The {what} should be a list of strings, not a single {_kind(values)}.")
    else:
        values = list(texts)
    if set(map(type, values)) <= {str}:  # most often so, and known sooner than item by item
        return values if isinstance(values, list) else list(values)
    for row, text in enumerate(values, first):
        if not isinstance(text, str):
            raise InputError(f"Item {row} of the {what} is {_kind(text)}, not a string.{_hint(text)}")
    return values if isinstance(values, list) else list(values)


def has_texts(side: object) -> bool:
    """Tell whether a list or column holds texts, and not vectors; nothing at all counts as texts."""
    if isinstance(side, np.ndarray):
        return side.dtype.kind in "UO" and side.ndim == 1
    if not isinstance(side, Iterable) or isinstance(side, Iterator):
        return False
    first: Any = next(iter(side), None)
    if hasattr(first, "as_py"):  # an Arrow column's own kind of string
        first = first.as_py()
    return first is None or isinstance(first, str)


def pick_prompt(
    prompt: str | None, prompt_name: str | None, prompts: Mapping[str, str], default_name: str | None
) -> str:
    """The prompt of one call: as it is given, else by its name, else the model's default, else none."""
    if prompt is not None and prompt_name is not None:
        raise InputError("Give prompt or prompt_name, not both.")
    if not isinstance(prompt, str | None):
        raise InputError(f"prompt should be a string, not {type(prompt).__name__}.")
    name = default_name if prompt_name is None else prompt_name
    if prompt is not None or name is None:
        return prompt or ""
    if name not in prompts:
        raise unknown("prompt", name, prompts or ["(this model has none)"])
    return prompts[name]


def _is_missing(value: object) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _kind(value: object) -> str:
    if _is_missing(value):
        return "missing (None or NaN)"
    return f"{type(value).__name__} ({value!r:.60})"


def _hint(value: object) -> str:
    if _is_missing(value):
        return " Drop or fill missing texts first; '' is a valid text."
    if isinstance(value, (bytes, bytearray)):
        return " Decode it first: text.decode('utf-8')."
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return " Pairs are scored by a CrossEncoder; a bi-encoder takes one text at a time."
    if isinstance(value, (list, tuple, np.ndarray)):
        return " Ready token ids are passed as TokenIds([[101, ...], ...])."
    return ""
