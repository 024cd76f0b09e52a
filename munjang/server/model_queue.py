"""ModelQueue: the requests that wait for one model, from which batches are taken by a budget of tokens.

The oldest request goes first. A request is a row of units (texts, or pairs of texts), each with its tokens; it may take
several batches. Where a model has several cores, each computes batches of its own, a fraction of what waits.
"""

import asyncio
import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from munjang.errors import MunjangError
from munjang.nn.threads import on_one_core
from munjang.server.limits import QueueLimits

MAX_RETRY_S = 60  # that a client is asked to wait
MIN_CORE_TOKENS = 64  # worth a core of their own; with fewer for each, all cores compute one batch together


@dataclass(frozen=True)
class Payload:
    """The units of a request, the tokens of each, and the settings that all of them have in common."""

    units: Sequence[Any]
    tokens: Sequence[int]
    settings: Hashable = None
    cut_rows: Sequence[int] = ()  # the texts that were too long


@dataclass(eq=False)
class PendingRequest:
    """A payload that waits for its results."""

    payload: Payload
    arrived_s: float
    future: "asyncio.Future[list[Any]]"
    num_taken: int = 0  # units that are in a batch, or done
    num_done: int = 0
    results: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.results = [None] * len(self.payload.units)

    @property
    def is_taken(self) -> bool:
        return self.num_taken == len(self.payload.units)

    def put(self, start: int, results: Sequence[Any]) -> None:
        """Store the results of the units from `start` on; of two slices the later one may be done first."""
        self.results[start : start + len(results)] = results
        self.num_done += len(results)
        if self.num_done == len(self.results):
            self.future.set_result(self.results)


@dataclass(frozen=True)
class Slice:
    """The units of one request that are in one batch."""

    request: PendingRequest
    start: int
    end: int

    @property
    def units(self) -> Sequence[Any]:
        return self.request.payload.units[self.start : self.end]

    @property
    def settings(self) -> Hashable:
        return self.request.payload.settings

    @property
    def num_tokens(self) -> int:
        return sum(self.request.payload.tokens[self.start : self.end])


Compute = Callable[[Sequence[Slice]], Sequence[Sequence[Any]]]  # a result for every unit of every part


@dataclass(eq=False)
class ModelQueue:
    """The requests of one model, waiting and computing."""

    name: str
    compute: Compute
    limits: QueueLimits = field(default_factory=QueueLimits)
    waiting: list[PendingRequest] = field(default_factory=list)
    num_inside: int = 0  # requests between arrival and answer
    used_s: float = 0.0  # of computing, for taking turns
    rate: float = 0.0  # tokens a second, as it was lately
    num_at_once: int = 1  # batches side by side, a core each
    num_running: int = 0

    @property
    def is_busy(self) -> bool:
        return self.num_running > 0

    def num_tokens(self, max_count: int | None = None) -> int:
        """Count the tokens that wait, up to `max_count`."""
        count = 0
        for request in self.waiting:
            if max_count is not None and count >= max_count:
                return max_count
            count += sum(request.payload.tokens[request.num_taken :])
        return count

    def budget(self) -> int:
        """Return the tokens of the next batch; a core takes its part of what waits and leaves the others theirs."""
        if self.num_at_once == 1:
            return self.limits.max_batch_tokens
        minimum = MIN_CORE_TOKENS if self.is_busy else MIN_CORE_TOKENS * self.num_at_once
        maximum = self.limits.max_batch_tokens
        own = -(-self.num_tokens(maximum) // self.num_at_once)
        return min(max(own, minimum), -(-maximum // self.num_at_once))

    def take(self, now_s: float) -> list[Slice]:
        """Take the next batch: the oldest request first; later ones fill the rest, unless one waits too long."""
        left, batch = self.budget(), list[Slice]()
        for request in list(self.waiting):
            if request.future.done():  # its client is gone
                self.waiting.remove(request)
                continue
            start, tokens = request.num_taken, request.payload.tokens
            end = start
            # a unit that is larger than any batch goes alone
            while end < len(tokens) and (tokens[end] <= left or not (batch or end > start)):
                left -= tokens[end]
                end += 1
            if end > start:
                request.num_taken = end
                batch.append(Slice(request, start, end))
            if request.is_taken:
                self.waiting.remove(request)
            elif (now_s - request.arrived_s) * 1000 >= self.limits.max_wait_ms:
                break
            if left <= 0:
                break
        return batch

    def run(self, batch: Sequence[Slice], is_lone: bool = True) -> list[Sequence[Any] | Exception]:
        """Compute a batch; where it fails, each request alone, so that only the one with a bad text fails."""
        try:
            with nullcontext() if is_lone else on_one_core():
                results = self.compute(batch)
            if [len(values) for values in results] != [len(part.units) for part in batch]:
                raise MunjangError(f"{self.name} gave another number of results than it was asked for.")
            return list(results)
        except Exception as error:
            if len(batch) == 1:
                return [error]
        return [self.run([part], is_lone)[0] for part in batch]

    def retry_s(self) -> int:
        """Estimate when what waits now will be done."""
        return max(1, min(MAX_RETRY_S, math.ceil(self.num_tokens() / self.rate))) if self.rate else 1
