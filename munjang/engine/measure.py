"""Timing of several actions in turns, so that a machine that slows down slows all of them."""

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Timing:
    """The seconds that each round took."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of all rounds."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """The fastest round, which nothing disturbed."""
        return min(self.seconds)


def take_turns(actions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Run every action once to warm up, then once a round.

    >>> timings = take_turns({"for": lambda: [n for n in range(99)], "list": lambda: list(range(99))}, rounds=5)
    >>> timings["list"].best <= timings["list"].median
    True
    """
    for action in actions.values():
        action()
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(turns)) for name, turns in seconds.items()}


def processor(device: torch.device | None = None) -> str:
    """Return the name of the GPU, or of the CPU with the vector instructions that torch uses."""
    if device is not None and device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({torch.backends.cpu.get_cpu_capability()})"
