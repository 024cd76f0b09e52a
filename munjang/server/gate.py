"""Gate: requests enter the application a few at a time, so that who needn't pass it waits for a few, not for all."""

import asyncio
from collections import deque

MAX_AT_ONCE = 4  # requests in a round of the event loop; each takes it a millisecond


class Gate:
    """Lets the first through first. Use it on one event loop."""

    def __init__(self, max_at_once: int = MAX_AT_ONCE) -> None:
        self.max_at_once = max_at_once
        self.waiting: deque[asyncio.Future[None]] = deque()
        self._num_let_in = 0  # in this round
        self._is_going_on = False

    async def enter(self) -> None:
        """Wait for a round with room."""
        loop = asyncio.get_running_loop()
        if not self._is_going_on:
            self._is_going_on = True
            loop.call_soon(self._next_round, loop)
        if not self.waiting and self._num_let_in < self.max_at_once:
            self._num_let_in += 1
            return
        future = loop.create_future()
        self.waiting.append(future)
        await future

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._num_let_in = 0
        while self.waiting and self._num_let_in < self.max_at_once:
            future = self.waiting.popleft()
            if not future.done():  # else its client is gone
                future.set_result(None)
                self._num_let_in += 1
        self._is_going_on = self._num_let_in > 0
        if self._is_going_on:
            loop.call_soon(self._next_round, loop)
