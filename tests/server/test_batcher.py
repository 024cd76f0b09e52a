"""Queues on an event loop: turns, drops, a full queue, failures, draining. Computing lists what was asked."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.nn.threads import is_on_one_core
from munjang.server.batcher import Batcher
from munjang.server.embedder import Embedder, Embedding
from munjang.server.errors import Closed, Full
from munjang.server.limits import QueueLimits
from munjang.server.model_queue import ModelQueue, Payload, Slice
from munjang.server.steps import Steps

T = TypeVar("T")


class Held:
    """Computing that waits until it may go, and remembers its batches."""

    def __init__(self) -> None:
        self.may_go, self.batches = threading.Event(), list[list[Any]]()

    def __call__(self, parts: Sequence[Slice]) -> list[Sequence[Any]]:
        assert self.may_go.wait(10)
        self.batches.append([unit for part in parts for unit in part.units])
        if any(unit == "poison" for part in parts for unit in part.units):
            raise RuntimeError("poison")
        return [[f"<{unit}>" for unit in part.units] for part in parts]


def work(*units: str, tokens: int = 1) -> Any:
    return steps(Payload(list(units), [tokens] * len(units)))


def failing() -> Steps[Payload]:
    yield
    raise ZeroDivisionError


def steps(value: T) -> Steps[T]:
    yield
    return value


async def until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("did not happen")


def test_requests_that_wait_are_packed_together() -> None:
    async def scene() -> tuple[Held, list[Any]]:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held, QueueLimits(max_batch_tokens=8)))
        asked = [asyncio.ensure_future(batcher.submit(queue, work(f"{n}.0", f"{n}.1"))) for n in range(5)]
        await until(lambda: len(queue.waiting) == 4)  # the first is being computed
        held.may_go.set()
        answers = [results for _, results in await asyncio.gather(*asked)]
        await batcher.drain()
        return held, answers

    held, answers = asyncio.run(scene())
    assert answers == [[f"<{n}.0>", f"<{n}.1>"] for n in range(5)]
    assert [len(batch) for batch in held.batches] == [2, 8]


def test_queues_take_turns() -> None:
    """Ten batches wait in one queue when the other gets its first: it does not wait for all of them."""

    async def scene() -> list[str]:
        order: list[str] = []
        go = threading.Event()

        def computing(name: str) -> Any:
            def compute(parts: Sequence[Slice]) -> list[Sequence[Any]]:
                assert go.wait(10)
                threading.Event().wait(0.005)
                order.append(name)
                return [part.units for part in parts]

            return compute

        batcher = Batcher()
        many, few = (batcher.add(ModelQueue(name, computing(name), QueueLimits(1))) for name in ("many", "few"))
        asked = [asyncio.ensure_future(batcher.submit(many, work(str(n)))) for n in range(10)]
        await until(lambda: len(many.waiting) == 9)
        asked += [asyncio.ensure_future(batcher.submit(few, work(str(n)))) for n in range(3)]
        await until(lambda: len(few.waiting) == 3)
        go.set()
        await asyncio.gather(*asked)
        await batcher.drain()
        return order

    order = asyncio.run(scene())
    assert sorted(order) == ["few"] * 3 + ["many"] * 10
    assert max(place for place, name in enumerate(order) if name == "few") <= 8


def test_every_core_has_a_batch_of_its_own() -> None:
    """The first text of an idle model has all cores; what comes then is computed beside it, by one core each."""

    async def scene() -> tuple[list[bool], int]:
        go, narrow = threading.Event(), list[bool]()

        def compute(parts: Sequence[Slice]) -> list[Sequence[Any]]:
            narrow.append(is_on_one_core())
            assert go.wait(10)
            return [[f"<{unit}>" for unit in part.units] for part in parts]

        batcher = Batcher()
        queue = batcher.add(ModelQueue("a", compute, num_at_once=2))
        asked = [asyncio.ensure_future(batcher.submit(queue, work("first")))]
        await until(lambda: len(narrow) == 1)
        asked += [asyncio.ensure_future(batcher.submit(queue, work(str(n), tokens=100))) for n in range(3)]
        await until(lambda: len(narrow) == 2 and len(queue.waiting) == 2)
        most = queue.num_running
        go.set()
        assert [results for _, results in await asyncio.gather(*asked)] == [["<first>"], ["<0>"], ["<1>"], ["<2>"]]
        await batcher.drain()
        assert queue.num_running == 0
        return narrow, most

    narrow, most = asyncio.run(scene())
    assert narrow[:2] == [False, True]
    assert most == 2


def test_a_request_in_two_batches_keeps_its_order() -> None:
    """The batch that began first is done last."""

    async def scene() -> list[Any]:
        second_done = threading.Event()

        def compute(parts: Sequence[Slice]) -> list[Sequence[Any]]:
            if parts[0].start == 0:
                assert second_done.wait(10)
                threading.Event().wait(0.02)
            else:
                second_done.set()
            return [[f"<{unit}>" for unit in part.units] for part in parts]

        batcher = Batcher()
        queue = batcher.add(ModelQueue("a", compute, num_at_once=2))
        _, results = await batcher.submit(queue, work("a", "b", "c", "d", tokens=100))
        await batcher.drain()
        return results

    assert asyncio.run(scene()) == ["<a>", "<b>", "<c>", "<d>"]


def test_queues_share_the_cores() -> None:
    """One queue has both cores and more waits for it: the first core that is free is the other queue's."""

    async def scene() -> list[str]:
        order, go = list[str](), threading.Semaphore(0)

        def computing(name: str) -> Any:
            def compute(parts: Sequence[Slice]) -> list[Sequence[Any]]:
                order.append(name)
                assert go.acquire(timeout=10)
                return [part.units for part in parts]

            return compute

        batcher = Batcher()
        many, few = (
            batcher.add(ModelQueue(name, computing(name), QueueLimits(2), num_at_once=2)) for name in ("many", "few")
        )
        asked = [asyncio.ensure_future(batcher.submit(many, work(str(n)))) for n in range(6)]
        await until(lambda: len(order) == 2 and len(many.waiting) == 4)
        go.release()
        await until(lambda: len(order) == 3)
        asked.append(asyncio.ensure_future(batcher.submit(few, work("x"))))
        await until(lambda: len(few.waiting) == 1)
        go.release()
        await until(lambda: len(order) == 4)
        go.release(10)
        await asyncio.gather(*asked)
        await batcher.drain()
        return order

    assert asyncio.run(scene())[:4] == ["many", "many", "many", "few"]


def test_cancelled_work_is_not_computed() -> None:
    async def scene() -> tuple[Held, int]:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held, QueueLimits(max_batch_tokens=1)))
        asked = [asyncio.ensure_future(batcher.submit(queue, work(str(n)))) for n in range(4)]
        await until(lambda: len(queue.waiting) == 3)
        asked[2].cancel()
        await asyncio.sleep(0)
        held.may_go.set()
        await asyncio.gather(*asked, return_exceptions=True)
        await batcher.drain()
        return held, queue.num_inside

    held, num_inside = asyncio.run(scene())
    assert held.batches == [["0"], ["1"], ["3"]]
    assert num_inside == 0


def test_a_full_queue_refuses_and_loses_nothing() -> None:
    async def scene() -> list[Any]:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held, QueueLimits(max_queue=3)))
        asked = [asyncio.ensure_future(batcher.submit(queue, work(str(n)))) for n in range(5)]
        await until(lambda: queue.num_inside == 3)
        held.may_go.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        again = await batcher.submit(queue, work("again"))
        await batcher.drain()
        return [*found, again]

    *found, again = asyncio.run(scene())
    assert [results for _, results in found[:3]] == [["<0>"], ["<1>"], ["<2>"]]
    assert all(isinstance(error, Full) for error in found[3:])
    assert again[1] == ["<again>"]


def test_a_failure_goes_to_its_own_request() -> None:
    async def scene() -> list[Any]:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held))
        asked = [
            asyncio.ensure_future(batcher.submit(queue, work(text))) for text in ("first", "good", "poison", "fine")
        ]
        await until(lambda: len(queue.waiting) == 3)
        held.may_go.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(ZeroDivisionError):
            await batcher.submit(queue, failing())
        assert queue.num_inside == 0
        await batcher.drain()
        return found

    first, good, poison, fine = asyncio.run(scene())
    assert [first[1], good[1], fine[1]] == [["<first>"], ["<good>"], ["<fine>"]]
    assert isinstance(poison, RuntimeError)


def test_draining_finishes_what_is_here_and_takes_nothing_new() -> None:
    async def scene() -> Any:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held))
        asked = asyncio.ensure_future(batcher.submit(queue, work("here")))
        await until(lambda: queue.is_busy)
        draining = asyncio.ensure_future(batcher.drain())
        await asyncio.sleep(0)
        with pytest.raises(Closed):
            await batcher.submit(queue, work("late"))
        held.may_go.set()
        await draining
        return (await asked)[1]

    assert asyncio.run(scene()) == ["<here>"]


@pytest.mark.parametrize("num_at_once", [1, 2])
def test_the_loop_goes_on_while_a_real_model_computes(model: BiEncoder, num_at_once: int) -> None:
    """Vectors of packed requests are those of `encode` (1e-5: a batch of another size adds in another order)."""
    embedder, texts = Embedder("tiny", model), [["hello world"], ["나는 오늘 " * 10, "a"], ["the cat " * 20] * 3]

    async def scene() -> tuple[list[Any], int]:
        batcher = Batcher()
        queue = batcher.add(
            ModelQueue("tiny", embedder.compute, QueueLimits(max_batch_tokens=64), num_at_once=num_at_once)
        )
        prepared = [embedder.prepare(each, Embedding()) for each in texts]
        asked = asyncio.gather(*[batcher.submit(queue, prepare) for prepare in prepared])
        num_ticks = 0
        while not asked.done():
            await asyncio.sleep(0)
            num_ticks += 1
        found = await asked
        await batcher.drain()
        return found, num_ticks

    found, num_ticks = asyncio.run(scene())
    assert num_ticks > 1
    for each, (_, rows) in zip(texts, found, strict=True):
        np.testing.assert_allclose(np.stack(rows), model.encode(each), atol=1e-5)
