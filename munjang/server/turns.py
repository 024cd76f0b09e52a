"""Turns: functions of many clients in one thread, such as the index's; the client that used least time goes first."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from munjang.server.errors import Full
from munjang.server.model_queue import seconds_to_wait
from munjang.server.shares import CLIENT, Shares
from munjang.server.steps import Steps, advance

T = TypeVar("T")
Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]
FORGETTING = 0.1  # of the time that a function takes, for each new one


class Turns:
    """One thread. A client's own functions keep their order; use it on one event loop."""

    def __init__(self, name: str, deadline_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.deadline_s, self.clock = name, deadline_s, clock
        self.lines: dict[str, deque[Job]] = {}
        self.shares = Shares()
        self.mean_s = 0.0  # of a function, lately
        self._thread = ThreadPoolExecutor(1, f"munjang-{name}")
        self._running: asyncio.Task[None] | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread when its client's turn comes; refuse it at once if that takes too long."""
        client = CLIENT.get()
        wait_s = self.wait_s(client)
        if wait_s > self.deadline_s:
            reason = f"The {self.name} has work for {wait_s:.0f} s waiting"
            raise Full(reason, seconds_to_wait(wait_s - self.deadline_s))
        return await self._enqueued(client, function)

    async def run_steps(self, steps: Steps[T], max_wait_s: float | None = None) -> T:
        """Take steps in the thread, a few at each turn; refuse what has had no turn after `max_wait_s`."""
        client, some = CLIENT.get(), partial(advance, steps)
        value = await self._enqueued(client, some, max_wait_s)
        while not value:
            value = await self._enqueued(client, some)
        return value[0]

    async def _enqueued(self, client: str, function: Callable[[], T], max_wait_s: float | None = None) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        job = (function, future)
        self.shares.enter(client)
        self.lines.setdefault(client, deque()).append(job)
        if self._running is None:
            self._running = loop.create_task(self._work())
        if max_wait_s is None:
            return await future

        def give_up() -> None:
            if job in self.lines.get(client, ()):  # else it runs
                future.set_exception(Full(f"Too many {self.name} wait for their turn", 1))

        timer = loop.call_later(max_wait_s, give_up)
        try:
            return await future
        finally:
            timer.cancel()

    def wait_s(self, client: str) -> float:
        """Estimate how long one more function of a client would wait: others get as many turns as it."""
        own = len(self.lines.get(client, ()))
        others = sum(min(len(line), own + 1) for name, line in self.lines.items() if name != client)
        return (own + others) * self.mean_s

    async def _work(self) -> None:
        while self.lines:
            client = self.shares.next(self.lines)
            line = self.lines[client]
            function, future = line.popleft()
            if not line:
                del self.lines[client]
            if not future.done():  # else its client is gone
                started_s = self.clock()
                await self._run(function, future)
                seconds = self.clock() - started_s
                self.shares.charge(client, seconds)
                self.mean_s += (seconds - self.mean_s) * FORGETTING
            self.shares.forget(self.lines)
        self._running = None

    async def _run(self, function: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except Exception as error:
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)

    def close(self) -> None:
        """Finish what runs, and end the thread."""
        self._thread.shutdown()
