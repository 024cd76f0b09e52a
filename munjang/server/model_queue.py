"""ModelQueue: the requests that wait for one model, from which batches are taken by a budget of tokens.

Clients take turns. Of one client's requests the oldest goes first, but one that has had many tokens computed lets
others pass, and a batch that begins with short requests is not filled up with parts of long ones. A request is a row
of units (texts, or pairs of texts), each with its tokens; it may take several batches. Where a model has several
cores, each computes batches of its own, a fraction of what waits.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from munjang.errors import MunjangError
from munjang.nn.threads import on_one_core
from munjang.server.errors import Full
from munjang.server.limits import QueueLimits
from munjang.server.shares import Shares

MAX_RETRY_S = 60  # that a client is asked to wait
TURN_TOKENS = 256  # of a client, before the next one's turn
LEVEL_TOKENS = 4096  # of a request, before later ones of its client pass
MIN_BATCH_TOKENS = 256  # of each core: as fast as more (docs/log.md, 2026-11-19), however slow the model
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
    client: str = ""
    num_taken: int = 0  # units that are in a batch, or done
    tokens_taken: int = 0
    num_done: int = 0
    results: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.results = [None] * len(self.payload.units)
        self.num_tokens = sum(self.payload.tokens)

    @property
    def tokens_left(self) -> int:
        return self.num_tokens - self.tokens_taken

    @property
    def is_taken(self) -> bool:
        return self.num_taken == len(self.payload.units)

    @property
    def is_short(self) -> bool:
        """Tell whether what is left of it is done in one turn."""
        return self.tokens_left <= TURN_TOKENS

    def advance(self, turn: int, room: int, is_first: bool) -> int:
        """Take units of up to `turn` tokens, or one of up to `room`, the first of a batch always; return how many."""
        tokens, first, before = self.payload.tokens, self.num_taken, self.tokens_taken
        while not self.is_taken:
            size, so_far = tokens[self.num_taken], self.tokens_taken - before
            if so_far + size > turn and (so_far or size > room) and not (is_first and not so_far):
                break
            self.num_taken += 1
            self.tokens_taken += size
        return self.num_taken - first

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

    shares: Shares = field(default_factory=Shares)
    arriving: Counter[str] = field(default_factory=Counter)  # tokens that are being prepared, by client

    @property
    def is_busy(self) -> bool:
        return self.num_running > 0

    def put(self, request: PendingRequest) -> None:
        """Let a request wait for its turn."""
        self.shares.enter(request.client)
        self.waiting.append(request)

    def num_tokens(self, max_count: int | None = None) -> int:
        """Count the tokens that wait, up to `max_count`."""
        count = sum(request.tokens_left for request in self.waiting)
        return count if max_count is None else min(count, max_count)

    def wait_s(self, client: str, num_tokens: int) -> float:
        """Estimate how long a request of so many tokens would wait: the work that goes before it, by the late rate."""
        level = max(num_tokens, LEVEL_TOKENS)
        work = Counter(self.arriving)
        for request in self.waiting:
            work[request.client] += min(request.tokens_left, level) if request.client == client else request.tokens_left
        own = work.pop(client, 0)
        before = own + sum(min(others, own + num_tokens) for others in work.values())
        return before / self.rate if self.rate else 0.0

    def check_wait(self, client: str, num_tokens: int) -> None:
        """Refuse a request that would wait longer than its deadline."""
        wait_s = self.wait_s(client, num_tokens)
        if wait_s > self.limits.deadline_s:
            reason = f"{self.name} has work for {wait_s:.0f} s waiting, and requests wait {self.limits.deadline_s:g} s"
            raise Full(reason, seconds_to_wait(wait_s - self.limits.deadline_s))

    @contextmanager
    def expecting(self, client: str, num_tokens: int) -> Iterator[None]:
        """Count tokens that will come, so that those behind them know how long they would wait."""
        self.arriving[client] += num_tokens
        try:
            yield
        finally:
            self.arriving[client] -= num_tokens
            if not self.arriving[client]:
                del self.arriving[client]

    def give_up(self, request: PendingRequest) -> None:
        """Refuse a request whose deadline has passed before its turn came."""
        if not request.num_taken and not request.future.done():
            reason = f"{self.name} had no room for this request within {self.limits.deadline_s:g} s"
            request.future.set_exception(Full(reason, self.retry_s()))

    def budget(self) -> int:
        """Return the tokens of the next batch; a core takes its part of what waits and leaves the others theirs."""
        maximum = self.limits.max_batch_tokens
        if self.rate:  # a batch that takes long keeps who comes waiting
            quick = int(self.rate * self.limits.max_batch_ms / 1000)
            maximum = min(maximum, max(quick, MIN_BATCH_TOKENS * self.num_at_once))
        if self.num_at_once == 1:
            return maximum
        minimum = MIN_CORE_TOKENS if self.is_busy else MIN_CORE_TOKENS * self.num_at_once
        own = -(-self.num_tokens(maximum) // self.num_at_once)
        return min(max(own, minimum), -(-maximum // self.num_at_once))

    def take(self, now_s: float) -> list[Slice]:
        """Take the next batch, a few units of each client in turn; one that waits too long is no longer overtaken."""
        budget = left = self.budget()
        starts: dict[PendingRequest, int] = {}
        self.waiting = [request for request in self.waiting if not request.future.done()]  # their clients are gone
        lines = self._lines(self.waiting)
        if lines and lines[self.shares.next(lines)][-1].is_short:  # it would be held up by parts of long ones
            lines = self._lines([request for request in self.waiting if request.is_short])
        while lines and left > 0:
            client = self.shares.next(lines)
            request = lines[client][-1]
            starts.setdefault(request, request.num_taken)
            before = request.tokens_left
            num_units = request.advance(min(left, TURN_TOKENS), left, is_first=left == budget)
            left -= before - request.tokens_left
            self.shares.charge(client, before - request.tokens_left)
            if not num_units and (now_s - request.arrived_s) * 1000 >= self.limits.max_wait_ms:
                break
            if request.is_taken or not num_units:
                lines[client].pop()
                if not lines[client]:
                    del lines[client]
        self.waiting = [request for request in self.waiting if not request.is_taken]
        self.shares.forget(request.client for request in self.waiting)
        parts = (Slice(request, start, request.num_taken) for request, start in starts.items())
        return [part for part in parts if part.end > part.start]

    def _lines(self, requests: Sequence[PendingRequest]) -> dict[str, list[PendingRequest]]:
        """Return the requests of each client, the one that is next at the end."""
        lines: dict[str, list[PendingRequest]] = {}
        for request in sorted(requests, key=lambda request: request.tokens_taken // LEVEL_TOKENS):
            lines.setdefault(request.client, []).append(request)
        for line in lines.values():
            line.reverse()
        return lines

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
        return seconds_to_wait(self.num_tokens() / self.rate) if self.rate else 1


def seconds_to_wait(seconds: float) -> int:
    """Return what a client is told in Retry-After."""
    return max(1, min(MAX_RETRY_S, math.ceil(seconds)))
