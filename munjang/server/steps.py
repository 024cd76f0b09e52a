"""Steps: work on texts and answers that stops between pieces, so that others get their turn."""

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]  # yields between pieces; its value is what the work comes to
PIECE_CHARS = 20_000  # that are read in a few milliseconds, at worst in thirty
PIECE_S = 0.02  # of a thread's own time, and what one step takes beyond


def pieces(texts: Sequence[Any], max_size: int = PIECE_CHARS) -> Iterator[slice]:
    """Cut a list into runs of at most so many characters (or ids) together; a longer text is alone.

    >>> [(part.start, part.stop) for part in pieces(["aa", "b", "cccc", "d"], 3)]
    [(0, 2), (2, 3), (3, 4)]
    """
    first = size = 0
    for row, text in enumerate(texts):
        if row > first and size + len(text) > max_size:
            yield slice(first, row)
            first, size = row, 0
        size += len(text)
    if first < len(texts):
        yield slice(first, len(texts))


def advance(steps: Steps[T], max_s: float = PIECE_S) -> list[T]:
    """Take one step, and more for a while; return the value in a list once there is one, else an empty list."""
    end_s = time.thread_time() + max_s
    try:
        next(steps)
        while time.thread_time() < end_s:
            next(steps)
    except StopIteration as stopped:
        return [stopped.value]
    return []


def finished(steps: Steps[T]) -> T:
    """Take all steps at once.

    >>> def count():
    ...     yield
    ...     return 2
    >>> finished(count())
    2
    """
    while not (value := advance(steps, float("inf"))):
        pass
    return value[0]
