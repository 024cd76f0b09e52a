"""Answers as JSON, value by value; large ones in a thread where clients take turns, so that the event loop is free."""

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from pydantic_core import to_json

from munjang.server.steps import Steps, finished
from munjang.server.turns import Turns
from munjang.types import Floats

T = TypeVar("T")
MIN_THREAD_NUMBERS = 16_384  # so many take the event loop a millisecond or two


async def written(lane: Turns, steps: Steps[bytes], num_numbers: int) -> bytes:
    """Write an answer, one of many numbers (or words) in a thread."""
    return finished(steps) if num_numbers < MIN_THREAD_NUMBERS else await lane.run_steps(steps)


def listed(values: Iterable[T], as_json: Callable[[T], bytes] = to_json) -> Steps[bytes]:
    """Encode values as a JSON list, each by a function."""
    encoded = []
    for value in values:
        encoded.append(as_json(value))
        yield
    return bracketed(encoded)


def bracketed(encoded: Sequence[bytes]) -> bytes:
    """Join what is encoded to a JSON list in one copy: three of 40 MB keep the interpreter for 60 ms.

    >>> bracketed([b"1", b"2"]), bracketed([])
    (b'[1,2]', b'[]')
    """
    parts = [b","] * (2 * len(encoded) + 1)
    parts[1::2] = encoded
    return b"".join([b"[", *parts[1:-1], b"]"])


def lists_of_vectors(texts: Iterable[Floats]) -> Steps[bytes]:
    """Encode the vectors of each text as a JSON list."""
    encoded = []
    for vectors_TD in texts:
        encoded.append((yield from listed(vectors_TD, as_numbers)))
    return bracketed(encoded)


def as_numbers(row_D: Floats) -> bytes:
    """Encode a vector as a list of numbers."""
    return to_json(row_D.tolist())


def as_base64(row_D: Floats) -> bytes:
    """Encode a vector as its little-endian float32 in base64."""
    return b'"' + base64.b64encode(np.asarray(row_D, "<f4").tobytes()) + b'"'
