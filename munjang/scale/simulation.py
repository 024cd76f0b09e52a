"""A pipeline of stages as discrete events: which one is busy all the time is the one that saturates first.

Blocks go through the stages in order. A stage has some servers and a small queue before it; a server whose block does
not fit into the next queue holds it, and waits.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline: how long a server of it works on a block."""

    name: str
    seconds: float
    servers: int = 1


@dataclass(frozen=True)
class Outcome:
    """How long all blocks took, and which share of that time each stage's servers worked."""

    seconds: float
    busy: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """The stage that is busiest."""
        return max(self.busy, key=lambda name: self.busy[name])


class _Line:
    """The state of a run: blocks that wait, servers that work, servers that hold a finished block."""

    def __init__(self, stages: Sequence[Stage], num_blocks: int, queue: int) -> None:
        self.stages, self.queue = stages, queue
        self.waiting = [num_blocks] + [0] * (len(stages) - 1)
        self.working, self.holding = [0] * len(stages), [0] * len(stages)
        self.events: list[tuple[float, int]] = []
        self.finished = 0

    def settle(self, now: float) -> None:
        """Move and start whatever can, from the end: a place that is freed there lets the one before move on."""
        for at in reversed(range(len(self.stages))):
            is_last = at == len(self.stages) - 1
            while self.holding[at] and (is_last or self.waiting[at + 1] < self.queue):
                self.holding[at] -= 1
                if is_last:
                    self.finished += 1
                else:
                    self.waiting[at + 1] += 1
                    self._start(at + 1, now)
            self._start(at, now)

    def _start(self, at: int, now: float) -> None:
        stage = self.stages[at]
        while self.waiting[at] and self.working[at] + self.holding[at] < stage.servers:
            self.waiting[at] -= 1
            self.working[at] += 1
            heapq.heappush(self.events, (now + stage.seconds, at))


def simulate(stages: Sequence[Stage], num_blocks: int, queue: int = 2) -> Outcome:
    """Send so many equal blocks through.

    >>> simulate([Stage("read", 1), Stage("compute", 3)], 10).bottleneck
    'compute'
    """
    line = _Line(stages, num_blocks, queue)
    now = 0.0
    line.settle(now)
    while line.finished < num_blocks:
        now, at = heapq.heappop(line.events)
        line.working[at] -= 1
        line.holding[at] += 1
        line.settle(now)
    busy = {each.name: num_blocks * each.seconds / (each.servers * now) if now else 0.0 for each in stages}
    return Outcome(now, busy)
