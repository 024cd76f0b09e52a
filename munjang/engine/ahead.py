"""Look-ahead: threads that tokenize and pack the next windows while the device computes; and stopping in between.

What waits between two steps is bounded; an error in any of them reaches the caller and ends the others.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TypeVar

T = TypeVar("T")
_here = threading.local()


def ahead(
    jobs: Iterable[Callable[[], T]], num_threads: int, begun: "deque[Future[T]] | None" = None
) -> Generator[T, None, None]:
    """Yield the result of each job, in order, while threads compute the next few; the threads end with this.

    `begun` is where jobs wait that have begun before their turn, for a caller who looks at them.
    """
    if not num_threads:
        for job in jobs:
            yield job()
        return
    waiting: deque[Future[T]] = deque() if begun is None else begun
    with ThreadPoolExecutor(num_threads, "munjang-ahead") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > num_threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def items_ahead(jobs: Iterable[Callable[[], Iterable[T]]], num_threads: int) -> Generator[T, None, None]:
    """Yield the items of each job's result; an error of a later job is raised at once, not when its turn comes."""
    begun: deque[Future[Iterable[T]]] = deque()
    with closing(ahead(jobs, num_threads, begun)) as results:
        for items in results:
            for item in items:
                _raise_early(begun)
                yield item


def _raise_early(begun: Iterable[Future[Iterable[T]]]) -> None:
    """Raise the error of a job before its turn: the items before it may take minutes."""
    if any(future.done() and future.exception() is not None for future in begun):
        for future in begun:  # of several errors, the one that a single thread would have met first
            future.result()


class Stopped(Exception):
    """The caller no longer waits for the remaining results."""


@contextmanager
def until(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Raise Stopped in what this thread computes, soon after `is_stopped` returns True."""
    _here.is_stopped = is_stopped
    try:
        yield
    finally:
        del _here.is_stopped


def check_stopped() -> None:
    """Raise Stopped if the result of this thread is no longer needed."""
    is_stopped: Callable[[], bool] | None = getattr(_here, "is_stopped", None)
    if is_stopped is not None and is_stopped():
        raise Stopped
