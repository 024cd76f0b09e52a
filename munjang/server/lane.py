"""Lane: the queue of one model, oldest request first, from which batches are taken by a budget of tokens.

A request is a row of units (texts, or pairs of texts), each with its tokens; it may take several batches. Where a model
has several cores, each computes batches of its own, of a share of what waits: when one is done there is a next one.
"""

import asyncio
import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from munjang.errors import InputError, MunjangError
from munjang.nn.threads import on_one_core

MAX_RETRY_S = 60  # what a client is asked to wait at most
LEAST = 64  # tokens that are worth a core of their own; fewer for each, and all cores compute them together


class Full(MunjangError):
    """The queue is full; `retry_s` is when there should be room again."""

    def __init__(self, name: str, max_queue: int, retry_s: int) -> None:
        super().__init__(f"{name} has {max_queue} requests waiting already; try again in {retry_s} s.")
        self.retry_s = retry_s


@dataclass(frozen=True)
class Work:
    """What a request asks for: units, the tokens of each, and the settings that all of them share."""

    units: Sequence[Any]
    tokens: Sequence[int]
    settings: Hashable = None


@dataclass(eq=False)
class Request:
    """Work that waits for its results."""

    work: Work
    arrived_s: float
    future: "asyncio.Future[list[Any]]"
    num_taken: int = 0  # units that are in a batch, or done
    num_done: int = 0
    results: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.results = [None] * len(self.work.units)

    @property
    def is_taken(self) -> bool:
        return self.num_taken == len(self.work.units)

    def put(self, start: int, results: Sequence[Any]) -> None:
        """Results of the units from there on; of two parts the later one may be done first."""
        self.results[start : start + len(results)] = results
        self.num_done += len(results)
        if self.num_done == len(self.results):
            self.future.set_result(self.results)


@dataclass(frozen=True)
class Part:
    """The units of one request that are in a batch."""

    request: Request
    start: int
    end: int

    @property
    def units(self) -> Sequence[Any]:
        return self.request.work.units[self.start : self.end]

    @property
    def settings(self) -> Hashable:
        return self.request.work.settings

    @property
    def num_tokens(self) -> int:
        return sum(self.request.work.tokens[self.start : self.end])


Compute = Callable[[Sequence[Part]], Sequence[Sequence[Any]]]  # a result for every unit of every part


@dataclass(frozen=True)
class Limits:
    """What a lane holds and how it packs."""

    max_batch_tokens: int = 4096  # of all that a model computes at once
    max_queue: int = 512  # requests, from their arrival to their answer
    max_wait_ms: int = 50  # for so long a request may be overtaken by smaller ones

    def __post_init__(self) -> None:
        for name in ("max_batch_tokens", "max_queue"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.max_wait_ms < 0:
            raise InputError(f"max_wait_ms can't be below 0; it is {self.max_wait_ms}.")


@dataclass(eq=False)
class Lane:
    """The queue of one model."""

    name: str
    compute: Compute
    limits: Limits = field(default_factory=Limits)
    waiting: list[Request] = field(default_factory=list)
    num_inside: int = 0  # requests between arrival and answer
    used_s: float = 0.0  # of computing, for taking turns
    rate: float = 0.0  # tokens a second, as it was lately
    num_at_once: int = 1  # batches side by side, a core each
    num_running: int = 0

    @property
    def is_busy(self) -> bool:
        return self.num_running > 0

    def num_tokens(self, most: int | None = None) -> int:
        """That wait; not counted further than `most`."""
        found = 0
        for request in self.waiting:
            if most is not None and found >= most:
                return most
            found += sum(request.work.tokens[request.num_taken :])
        return found

    def budget(self) -> int:
        """Tokens of the next batch; a core takes its share of what waits, and leaves the others theirs."""
        if self.num_at_once == 1:
            return self.limits.max_batch_tokens
        least = LEAST if self.is_busy else LEAST * self.num_at_once
        whole = self.limits.max_batch_tokens
        share = -(-self.num_tokens(whole) // self.num_at_once)
        return min(max(share, least), -(-whole // self.num_at_once))

    def take(self, now_s: float) -> list[Part]:
        """The next batch: the oldest request first; later ones fill what it leaves, unless someone waits too long."""
        left, parts = self.budget(), list[Part]()
        for request in list(self.waiting):
            if request.future.done():  # its client is gone
                self.waiting.remove(request)
                continue
            start, tokens = request.num_taken, request.work.tokens
            end = start
            # a unit that is larger than any batch goes alone
            while end < len(tokens) and (tokens[end] <= left or not (parts or end > start)):
                left -= tokens[end]
                end += 1
            if end > start:
                request.num_taken = end
                parts.append(Part(request, start, end))
            if request.is_taken:
                self.waiting.remove(request)
            elif (now_s - request.arrived_s) * 1000 >= self.limits.max_wait_ms:
                break
            if left <= 0:
                break
        return parts

    def computed(self, parts: Sequence[Part], is_lone: bool = True) -> list[Sequence[Any] | Exception]:
        """Results of a batch; where it fails, of each request alone, so that one bad text is the only one to fail."""
        try:
            with nullcontext() if is_lone else on_one_core():
                results = self.compute(parts)
            if [len(each) for each in results] != [len(part.units) for part in parts]:
                raise MunjangError(f"{self.name} gave other results than it was asked for.")  # else someone waits on
            return list(results)
        except Exception as error:
            if len(parts) == 1:
                return [error]
        return [self.computed([part], is_lone)[0] for part in parts]

    def retry_s(self) -> int:
        """When what waits now will be done, as far as one can tell."""
        return max(1, min(MAX_RETRY_S, math.ceil(self.num_tokens() / self.rate))) if self.rate else 1
