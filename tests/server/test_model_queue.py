"""Batches as they are taken from a queue: by hand, with a clock that the test sets."""

import asyncio
from typing import Any

import pytest

from munjang.errors import InputError, MunjangError
from munjang.server.errors import Full
from munjang.server.limits import QueueLimits
from munjang.server.model_queue import ModelQueue, Payload, PendingRequest


def queue_of(*requests: tuple[float, list[int]], budget: int = 10, max_wait_ms: int = 50) -> ModelQueue:
    """A queue with requests that arrived then, with units of so many tokens each."""
    queue = ModelQueue("x", lambda parts: [part.units for part in parts], QueueLimits(budget, 8, max_wait_ms))
    loop = asyncio.new_event_loop()
    for name, (arrived_s, tokens) in enumerate(requests):
        units = [f"{name}.{place}" for place in range(len(tokens))]
        queue.waiting.append(PendingRequest(Payload(units, tokens), arrived_s, loop.create_future()))
    loop.close()
    return queue


def batches(queue: ModelQueue, now_s: float = 0.0) -> list[list[Any]]:
    found = []
    while parts := queue.take(now_s):
        found.append([unit for part in parts for unit in part.units])
    return found


def test_requests_share_a_batch() -> None:
    assert batches(queue_of((0, [3, 3]), (0, [4]), (0, [5]))) == [["0.0", "0.1", "1.0"], ["2.0"]]


def test_a_large_request_takes_several_batches() -> None:
    assert batches(queue_of((0, [6, 6, 6]), (0, [6]))) == [["0.0"], ["0.1"], ["0.2"], ["1.0"]]


def test_a_small_one_fills_what_is_left_over() -> None:
    assert batches(queue_of((0, [7]), (0, [8]), (0, [3]))) == [["0.0", "2.0"], ["1.0"]]


def test_nobody_is_overtaken_for_longer_than_max_wait() -> None:
    """The second has waited 60 ms when the batch is made: the third may no longer pass it, though it would fit."""
    requests = ((0.0, [7]), (0.0, [8]), (0.05, [3]))
    assert batches(queue_of(*requests), now_s=0.049) == [["0.0", "2.0"], ["1.0"]]
    assert batches(queue_of(*requests), now_s=0.060) == [["0.0"], ["1.0"], ["2.0"]]


def test_a_unit_larger_than_a_batch_goes_alone() -> None:
    assert batches(queue_of((0, [2, 25]), (0, [1]))) == [["0.0", "1.0"], ["0.1"]]


def test_who_is_gone_is_left_out() -> None:
    queue = queue_of((0, [3]), (0, [3]), (0, [3]))
    queue.waiting[1].future.cancel()
    assert batches(queue) == [["0.0", "2.0"]]
    assert queue.waiting == []


def test_several_cores_share_what_waits() -> None:
    """Twelve texts of 50 tokens for two cores: a half, then halves of what is left, down to what is worth a core."""
    queue = queue_of(*[(0, [50])] * 12, budget=2000)
    queue.num_at_once = 2
    assert [len(batch) for batch in batches(queue)] == [6, 3, 2, 1]  # 2: idle, and so few go to all cores together
    queue = queue_of(*[(0, [50])] * 12, budget=2000)
    queue.num_at_once, queue.num_running = 2, 1
    assert [len(batch) for batch in batches(queue)] == [6, 3, 1, 1, 1]


def test_cores_together_keep_to_the_limit() -> None:
    queue = queue_of(*[(0, [50])] * 100, budget=400)
    queue.num_at_once = 2
    assert {len(batch) for batch in batches(queue)[:-4]} == {4}


def test_parts_come_back_in_any_order() -> None:
    async def scene() -> list[Any]:
        request = PendingRequest(Payload(["a", "b", "c"], [1, 1, 1]), 0.0, asyncio.get_running_loop().create_future())
        request.put(2, ["C"])
        assert not request.future.done()
        request.put(0, ["A", "B"])
        return await request.future

    assert asyncio.run(scene()) == ["A", "B", "C"]


def test_one_bad_request_fails_alone() -> None:
    def compute(parts: Any) -> list[Any]:
        if any("1.0" in part.units for part in parts):
            raise RuntimeError("bad")
        return [part.units for part in parts]

    queue = queue_of((0, [1]), (0, [1]), (0, [1]))
    queue.compute = compute
    first, second, third = queue.run(queue.take(0.0))
    assert (first, third) == (["0.0"], ["2.0"])
    assert isinstance(second, RuntimeError)


def test_too_few_results_are_a_failure() -> None:
    queue = queue_of((0, [1, 1]), (0, [1]))
    queue.compute = lambda parts: [part.units[:1] for part in parts]
    first, second = queue.run(queue.take(0.0))
    assert isinstance(first, MunjangError)
    assert second == ["1.0"]


def test_retry_after_what_waits_is_done() -> None:
    queue = queue_of((0, [30]), (0, [70]))
    assert queue.retry_s() == 1  # nothing measured yet
    queue.rate = 20.0
    assert queue.retry_s() == 5
    queue.rate = 0.01
    assert queue.retry_s() == 60
    assert "try again in 5 s" in str(Full("x", 5))


@pytest.mark.parametrize("limits", [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_limits_are_checked(limits: tuple[int, int, int]) -> None:
    with pytest.raises(InputError):
        QueueLimits(*limits)


def test_what_waits_is_counted_no_further_than_a_batch() -> None:
    queue = queue_of(*[(0, [50] * 100)] * 4, budget=4096)
    assert (queue.num_tokens(), queue.num_tokens(4096)) == (20_000, 4096)
    queue.num_at_once = 2
    assert queue.budget() == 2048
