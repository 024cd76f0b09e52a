"""Batcher: the requests of many clients, packed into batches by a budget of tokens.

Every model has a lane (lane.py). A lane computes one batch at a time, or one on every core, in worker threads; lanes
take turns by the seconds that they have used, so neither embedding nor re-ranking starves. Everything but computing
happens on the event loop, so there are no locks.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from munjang.errors import InputError, MunjangError
from munjang.server.lane import Full, Lane, Part, Request, Work


class Closed(MunjangError):
    """The server is shutting down."""


class Batcher:
    """Lanes that share the machine. Use it on one event loop."""

    def __init__(self, workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        if workers < 1:
            raise InputError(f"workers must be at least 1, not {workers}.")
        self.lanes: dict[str, Lane] = {}
        self.clock, self.workers, self.is_closed = clock, workers, False
        self.on_batch: Callable[[Lane, Sequence[Part], float], None] = lambda lane, parts, seconds: None
        self._pool = ThreadPoolExecutor(workers * (os.cpu_count() or 1), "munjang-batch")
        self._preparing = ThreadPoolExecutor(1, "munjang-prepare")
        self._running: set[asyncio.Task[None]] = set()
        self._turn_s = 0.0  # of the lane that was served last

    def add(self, lane: Lane) -> Lane:
        """Another lane; its name must be new."""
        if lane.name in self.lanes:
            raise InputError(f"Two models are called {lane.name!r}; give each a name of its own.")
        self.lanes[lane.name] = lane
        return lane

    async def ask(self, lane: Lane, prepare: Callable[[], Work]) -> tuple[Work, list[Any]]:
        """Prepare work (tokenize) in a thread, wait for its turn, give its results; cancel it to take it back."""
        if self.is_closed:
            raise Closed("The server is shutting down.")
        if lane.num_inside >= lane.limits.max_queue:
            raise Full(lane.name, lane.limits.max_queue, lane.retry_s())
        lane.num_inside += 1
        try:
            loop = asyncio.get_running_loop()
            work = await loop.run_in_executor(self._preparing, prepare)
            if not work.units:
                return work, []
            request = Request(work, self.clock(), loop.create_future())
            if not lane.waiting and not lane.is_busy:
                lane.used_s = max(lane.used_s, self._turn_s)  # who was idle has saved up nothing
            lane.waiting.append(request)
            self._start()
            return work, await request.future
        finally:
            lane.num_inside -= 1

    def _start(self) -> None:
        """Batches for every free core; the lane that has used least time first."""
        lanes = self.lanes.values()
        num_cores = self.workers * max(lane.num_at_once for lane in lanes)
        while sum(lane.num_running for lane in lanes) < num_cores:
            ready = [lane for lane in lanes if lane.waiting and lane.num_running < lane.num_at_once]
            if not ready:
                return
            lane = min(ready, key=lambda lane: lane.used_s)
            parts = lane.take(self.clock())
            if not parts:
                continue
            is_lone = not any(each.waiting or each.is_busy for each in lanes)  # then all cores may compute it together
            lane.num_running += 1
            self._turn_s = lane.used_s
            task = asyncio.get_running_loop().create_task(self._run(lane, parts, is_lone))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, lane: Lane, parts: list[Part], is_lone: bool) -> None:
        started_s = self.clock()
        outcomes = await asyncio.get_running_loop().run_in_executor(self._pool, lane.computed, parts, is_lone)
        seconds = self.clock() - started_s
        if seconds > 0:
            rate = sum(part.num_tokens for part in parts) / seconds * lane.num_running
            lane.rate = rate if not lane.rate else 0.8 * lane.rate + 0.2 * rate
        lane.num_running -= 1
        lane.used_s += seconds * (lane.num_at_once if is_lone else 1)
        for part, outcome in zip(parts, outcomes, strict=True):
            _deliver(lane, part, outcome)
        self._start()
        self.on_batch(lane, parts, seconds)

    async def drain(self) -> None:
        """Take no new requests, finish those that are here."""
        self.is_closed = True
        while any(lane.num_inside for lane in self.lanes.values()):
            await asyncio.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Let the threads go; what still waits is left."""
        self.is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._preparing.shutdown(wait=False, cancel_futures=True)


def _deliver(lane: Lane, part: Part, outcome: Sequence[Any] | Exception) -> None:
    request = part.request
    if request.future.done():
        return
    if isinstance(outcome, Exception):
        request.future.set_exception(outcome)
        if request in lane.waiting:  # the rest of it need not be computed
            lane.waiting.remove(request)
        return
    request.put(part.start, outcome)
