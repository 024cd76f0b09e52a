"""Batcher: the requests of many clients, packed into batches by a budget of tokens.

Every model has a queue (model_queue.py), which computes one batch at a time, or one on every core, in worker threads.
Queues take turns by the seconds that they have used, so neither embedding nor re-ranking starves. What would wait
longer than its deadline is refused at once. Everything but computing happens on the event loop, so there are no locks.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from munjang.errors import InputError
from munjang.server.errors import Closed, Full
from munjang.server.model_queue import ModelQueue, Payload, PendingRequest, Slice
from munjang.server.shares import CLIENT
from munjang.server.steps import PIECE_CHARS, Steps
from munjang.server.turns import Turns

T = TypeVar("T")

CHARS_PER_TOKEN = 4  # before the tokens are known


def expected_tokens(inputs: Sequence[Any], max_length: int | None) -> int:
    """Estimate the tokens of texts or rows of ids before they are read: no more of each than the model reads.

    >>> expected_tokens(["a" * 40, "a" * 4000], 256), expected_tokens([[5] * 40], None)
    (266, 40)
    """
    sizes = (len(each) // CHARS_PER_TOKEN if isinstance(each, str) else len(each) for each in inputs)
    return sum(sizes) if max_length is None else sum(min(size, max_length) for size in sizes)


class Batcher:
    """Queues that share the machine. Use it on one event loop."""

    def __init__(self, workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        if workers < 1:
            raise InputError(f"workers must be at least 1, not {workers}.")
        self.queues: dict[str, ModelQueue] = {}
        self.clock, self.workers, self.is_closed = clock, workers, False
        self.on_batch: Callable[[ModelQueue, Sequence[Slice], float], None] = lambda queue, batch, seconds: None
        self._pool = ThreadPoolExecutor(workers * (os.cpu_count() or 1), "munjang-batch")
        self._reading, self._reading_long = Turns("texts"), Turns("long texts")
        self._running: set[asyncio.Task[None]] = set()
        self._turn_s = 0.0  # used by the queue that was served last

    def add(self, queue: ModelQueue) -> ModelQueue:
        """Add a queue; its name must be new."""
        if queue.name in self.queues:
            raise InputError(f"Two models are called {queue.name!r}; give each a name of its own.")
        self.queues[queue.name] = queue
        return queue

    async def submit(
        self, queue: ModelQueue, prepare: Steps[Payload], num_chars: int = 0, num_tokens: int = 0
    ) -> tuple[Payload, list[Any]]:
        """Prepare (tokenize) in a thread, wait for a turn and return the results; cancel to withdraw.

        `num_chars`: what is read; `num_tokens`: what is expected to be computed of it.
        """
        if self.is_closed:
            raise Closed("The server is shutting down.")
        if queue.num_inside >= queue.limits.max_queue:
            raise Full(f"{queue.name} has {queue.limits.max_queue} requests waiting already", queue.retry_s())
        client = CLIENT.get()
        queue.check_wait(client, num_tokens)
        queue.num_inside += 1
        due_s = self.clock() + queue.limits.deadline_s
        try:
            with queue.expecting(client, num_tokens):
                payload = await self.read(prepare, num_chars, queue.limits.deadline_s)
            if not payload.units:
                return payload, []
            queue.check_wait(client, sum(payload.tokens))
            loop = asyncio.get_running_loop()
            request = PendingRequest(payload, self.clock(), loop.create_future(), client)
            if not queue.waiting and not queue.is_busy:
                queue.used_s = max(queue.used_s, self._turn_s)  # idle time saves up nothing
            queue.put(request)
            self._start()
            timer = loop.call_later(max(0.0, due_s - self.clock()), queue.give_up, request)
            try:
                return payload, await request.future
            finally:
                timer.cancel()
        finally:
            queue.num_inside -= 1

    async def read(self, steps: Steps[T], num_chars: int, deadline_s: float) -> T:
        """Read texts in a thread where clients take turns: one for short texts, which never wait for long ones."""
        lane = self._reading_long if num_chars > PIECE_CHARS else self._reading
        return await lane.run_steps(steps, deadline_s)

    def _start(self) -> None:
        """Start batches on every free core; the queue that has used least time goes first."""
        queues = self.queues.values()
        num_cores = self.workers * max(queue.num_at_once for queue in queues)
        while sum(queue.num_running for queue in queues) < num_cores:
            ready = [queue for queue in queues if queue.waiting and queue.num_running < queue.num_at_once]
            if not ready:
                return
            queue = min(ready, key=lambda queue: queue.used_s)
            batch = queue.take(self.clock())
            if not batch:
                continue
            is_lone = not any(
                other.waiting or other.is_busy for other in queues
            )  # then all cores may compute it together
            queue.num_running += 1
            self._turn_s = queue.used_s
            task = asyncio.get_running_loop().create_task(self._run(queue, batch, is_lone))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, queue: ModelQueue, batch: list[Slice], is_lone: bool) -> None:
        started_s = self.clock()
        outcomes = await asyncio.get_running_loop().run_in_executor(self._pool, queue.run, batch, is_lone)
        seconds = self.clock() - started_s
        if seconds > 0:
            rate = sum(part.num_tokens for part in batch) / seconds * queue.num_running
            queue.rate = rate if not queue.rate else 0.8 * queue.rate + 0.2 * rate
        queue.num_running -= 1
        queue.used_s += seconds * (queue.num_at_once if is_lone else 1)
        for part, outcome in zip(batch, outcomes, strict=True):
            _deliver(queue, part, outcome)
        self._start()
        self.on_batch(queue, batch, seconds)

    async def drain(self) -> None:
        """Take no new requests and finish those that are here."""
        self.is_closed = True
        while any(queue.num_inside for queue in self.queues.values()):
            await asyncio.sleep(0.01)
        self.close()

    def close(self) -> None:
        """Stop the threads; requests that still wait are dropped."""
        self.is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for lane in (self._reading, self._reading_long):
            lane.close()


def _deliver(queue: ModelQueue, part: Slice, outcome: Sequence[Any] | Exception) -> None:
    request = part.request
    if request.future.done():
        return
    if isinstance(outcome, Exception):
        request.future.set_exception(outcome)
        if request in queue.waiting:  # the rest of it need not be computed
            queue.waiting.remove(request)
        return
    request.put(part.start, outcome)
