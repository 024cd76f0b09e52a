"""Turns: everyone warms up once, then one after another, round by round."""

import torch

from munjang.engine.measure import Timing, processor, take_turns


def test_turns_alternate() -> None:
    calls: list[str] = []
    found = take_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert "".join(calls) == "ab" * 4
    assert [len(timing.seconds) for timing in found.values()] == [3, 3]


def test_timing() -> None:
    timing = Timing((3.0, 1.0, 2.5))
    assert (timing.median, timing.best) == (2.5, 1.0)


def test_processor_names_the_instructions() -> None:
    assert torch.backends.cpu.get_cpu_capability() in processor()
    assert processor(torch.device("cpu")) == processor()
