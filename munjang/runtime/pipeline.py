"""Tokens to results, overlapped: the caller tokenizes and packs the next batches while the executor computes.

B texts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from torch import Tensor

from munjang.runtime.executor import Executor, Result
from munjang.text.packing import Packed, cumulative, cut_batches, cut_evenly, gather, pack
from munjang.text.tokenizer import Tokens
from munjang.types import Ints

WAITING = 2  # batches ready beside those being computed: enough to keep a device busy, few enough to bound memory


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
    starts = cumulative(tokens.lengths)
    cut = cut_batches(tokens.lengths, budget) if multiple is None else cut_evenly(tokens.lengths, budget, multiple)
    for chosen in cut:
        lengths = tokens.lengths[chosen]
        types = None if tokens.types is None else gather(tokens.types, starts, chosen, lengths)
        skip = None if work.skip_B is None else work.skip_B[chosen]
        yield work.rows_B[chosen], pack(gather(tokens.ids, starts, chosen, lengths), lengths, types, skip, pad_id)


def compute(
    executor: Executor,
    stream: Iterable[Work],
    forward: Callable[[Packed], Tensor],
    batch_tokens: int | None = None,
    pad_id: int | None = None,
    keeps_device: bool = False,
) -> Iterator[tuple[Ints, Packed, Tensor]]:
    """Results of all work, batch by batch as they are done, with their rows."""
    waiting: deque[tuple[Ints, Packed, Future[Result]]] = deque()
    try:
        for work in stream:
            num_tokens = len(work.tokens.ids)
            budget = executor.budget(num_tokens, batch_tokens)
            is_strict = batch_tokens is not None or executor.limit is not None
            for rows, batch in batches(work, budget, pad_id, None if is_strict else executor.num_workers):
                future = executor.submit(batch, forward, keeps_device, is_one_of_many=num_tokens > budget)
                waiting.append((rows, batch, future))
                if len(waiting) > executor.num_workers + WAITING:
                    yield _next(waiting)
        while waiting:
            yield _next(waiting)
    finally:  # an error or Ctrl-C: drop what has not begun
        for _, _, future in waiting:
            future.cancel()


def _next(waiting: "deque[tuple[Ints, Packed, Future[Result]]]") -> tuple[Ints, Packed, Tensor]:
    rows, batch, future = waiting.popleft()
    return rows, batch, future.result().wait()
