"""Simulate a pipeline of stages by discrete events: the stage that is always busy is the bottleneck.

Blocks pass through the stages in order. A stage has servers and a small queue in front of it; a server whose finished
block doesn't fit into the next queue holds it and waits.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline: the time that one of its servers takes per block."""

    name: str
    seconds: float
    servers: int = 1


@dataclass(frozen=True)
class Outcome:
    """The time for all blocks, and the fraction of it that each stage's servers were busy."""

    seconds: float
    busy: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """Return the busiest stage."""
        return max(self.busy, key=lambda name: self.busy[name])


class _Pipeline:
    """The state of a run: waiting blocks, working servers, servers that hold a finished block."""

    def __init__(self, stages: Sequence[Stage], num_blocks: int, queue: int) -> None:
        self.stages, self.queue = stages, queue
        self.waiting = [num_blocks] + [0] * (len(stages) - 1)
        self.working, self.holding = [0] * len(stages), [0] * len(stages)
        self.events: list[tuple[float, int]] = []
        self.finished = 0

    def settle(self, now: float) -> None:
        """Move and start whatever can, from the end: space freed there lets earlier stages move on."""
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
    """Send equal blocks through the stages.

    >>> simulate([Stage("read", 1), Stage("compute", 3)], 10).bottleneck
    'compute'
    """
    line = _Pipeline(stages, num_blocks, queue)
    now = 0.0
    line.settle(now)
    while line.finished < num_blocks:
        now, at = heapq.heappop(line.events)
        line.working[at] -= 1
        line.holding[at] += 1
        line.settle(now)
    busy = {each.name: num_blocks * each.seconds / (each.servers * now) if now else 0.0 for each in stages}
    return Outcome(now, busy)
