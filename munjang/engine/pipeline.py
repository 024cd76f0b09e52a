"""Texts to results, overlapped: threads tokenize and pack the next batches while the executor computes.

B texts. What is waiting between two stages is bounded; an error in any of them reaches the caller and ends the others.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from torch import Tensor

from munjang.engine.executor import Executor, Result
from munjang.text.flat import cumulative, gather
from munjang.text.packing import Packed, cut_batches, cut_evenly, pack
from munjang.text.tokenizer import Tokens
from munjang.types import Ints

T = TypeVar("T")
WAITING = 2  # batches ready beside those being computed: enough to keep a device busy, few enough to bound memory


_here = threading.local()


class Stopped(Exception):
    """Nobody waits for the rest any more."""


@contextmanager
def until(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """What this thread computes meanwhile ends with Stopped, soon after `is_stopped` says so."""
    _here.is_stopped = is_stopped
    try:
        yield
    finally:
        del _here.is_stopped


@dataclass(frozen=True)
class Work:
    """Tokenized texts, and the rows of the whole job that they are."""

    rows_B: Ints
    tokens: Tokens
    skip_B: Ints | None = None


def batches(work: Work, budget: int, pad_id: int | None, multiple: int | None = None) -> Iterator[tuple[Ints, Packed]]:
    """Packed batches of `budget` tokens, with their rows; not one slot of them is padding.

    `multiple` None: never more than the budget. Else it is met on average, by a multiple of so many equal batches.
    """
    tokens = work.tokens
    if len(tokens.lengths) == 1:
        yield work.rows_B, pack(tokens.ids, tokens.lengths, tokens.types, work.skip_B, pad_id)
        return
    starts = cumulative(tokens.lengths)
    cut = cut_batches(tokens.lengths, budget) if multiple is None else cut_evenly(tokens.lengths, budget, multiple)
    for chosen in cut:
        lengths = tokens.lengths[chosen]
        types = None if tokens.types is None else gather(tokens.types, starts, chosen, lengths)
        skip = None if work.skip_B is None else work.skip_B[chosen]
        yield work.rows_B[chosen], pack(gather(tokens.ids, starts, chosen, lengths), lengths, types, skip, pad_id)


@dataclass(frozen=True)
class Ready:
    """The packed batches of some work."""

    batches: list[tuple[Ints, Packed]]
    is_one_of_many: bool


Job = Callable[[], Work]  # tokenizes when it is called, maybe in another thread


def compute(
    executor: Executor,
    jobs: Iterable[Job],
    forward: Callable[[Packed], Tensor],
    batch_tokens: int | None = None,
    pad_id: int | None = None,
    keeps_device: bool = False,
    threads: int = 0,
) -> Generator[tuple[Ints, Packed, Tensor], None, None]:
    """Results of all jobs, batch by batch as they are done, with their rows; `threads` tokenize ahead.

    Close it where an error may come in between: who holds that error would hold the threads too.
    """
    waiting: deque[tuple[Ints, Packed, Future[Result]]] = deque()
    begun: deque[Future[Ready]] = deque()
    prepare = partial(_prepare, executor, batch_tokens=batch_tokens, pad_id=pad_id)
    with closing(ahead((partial(prepare, job) for job in jobs), threads, begun)) as stream:
        try:
            for ready in stream:
                for rows, batch in ready.batches:
                    _surface(begun)
                    _look_up()
                    future = executor.submit(batch, forward, keeps_device, ready.is_one_of_many)
                    waiting.append((rows, batch, future))
                    if len(waiting) > executor.num_workers + WAITING:
                        yield _next(waiting)
            while waiting:
                _look_up()
                yield _next(waiting)
        finally:  # an error or Ctrl-C: drop what has not begun, before threads that may wait behind it are ended
            for _, _, future in waiting:
                future.cancel()


def _prepare(executor: Executor, job: Job, batch_tokens: int | None, pad_id: int | None) -> Ready:
    work = job()
    num_tokens = len(work.tokens.ids)
    budget = executor.budget(num_tokens, batch_tokens)
    is_strict = batch_tokens is not None or executor.limit is not None or executor.device.type == "cuda"
    cut = batches(work, budget, pad_id, None if is_strict else executor.num_sharing)
    return Ready([(rows, executor.lay_out(batch)) for rows, batch in cut], num_tokens > budget)


def ahead(
    jobs: Iterable[Callable[[], T]], threads: int, begun: "deque[Future[T]] | None" = None
) -> Generator[T, None, None]:
    """What each job gives, in their order, a few of them being computed ahead by threads that end with this.

    Those are in `begun`, for who wants to look at them before their turn.
    """
    if not threads:
        for job in jobs:
            yield job()
        return
    waiting: deque[Future[T]] = deque() if begun is None else begun
    with ThreadPoolExecutor(threads, "munjang-ahead") as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _surface(begun: Iterable[Future[Ready]]) -> None:
    """Raise what a job has met, not only when its turn comes: a window of texts before it may take minutes."""
    if any(future.done() and future.exception() is not None for future in begun):
        for future in begun:  # of several, the one that a single thread would have met first
            future.result()


def _look_up() -> None:
    is_stopped: Callable[[], bool] | None = getattr(_here, "is_stopped", None)
    if is_stopped is not None and is_stopped():
        raise Stopped


def _next(waiting: "deque[tuple[Ints, Packed, Future[Result]]]") -> tuple[Ints, Packed, Tensor]:
    rows, batch, future = waiting.popleft()
    return rows, batch, future.result().wait()
