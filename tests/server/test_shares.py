"""Turns between clients: at a model and in the index's thread, and what would wait too long is refused at once."""

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

from munjang.errors import InputError
from munjang.server.batcher import Batcher
from munjang.server.errors import Full
from munjang.server.limits import QueueLimits
from munjang.server.model_queue import TURN_TOKENS, ModelQueue, Payload, PendingRequest
from munjang.server.shares import CLIENT, Shares, client_of
from munjang.server.steps import PIECE_S, Steps
from munjang.server.tenants import EVERYONE, Key
from munjang.server.turns import Turns
from tests.server.test_batcher import Held, steps, until, work


def queue_of(*requests: tuple[str, list[int]], budget: int = 1024) -> ModelQueue:
    """A queue with requests of clients, in this order, with units of so many tokens each."""
    queue = ModelQueue("x", lambda parts: [part.units for part in parts], QueueLimits(budget))
    loop = asyncio.new_event_loop()
    for name, (client, tokens) in enumerate(requests):
        units = [f"{name}.{place}" for place in range(len(tokens))]
        queue.put(PendingRequest(Payload(units, tokens), 0.0, loop.create_future(), client))
    loop.close()
    return queue


def taken(queue: ModelQueue) -> dict[str, int]:
    """The tokens of each client in the next batch."""
    found: dict[str, int] = {}
    for part in queue.take(99.0):
        found[part.request.client] = found.get(part.request.client, 0) + part.num_tokens
    return found


async def asked_by(client: str, call: Any) -> Any:
    CLIENT.set(client)
    return await call()


def ask(client: str, call: Any) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(asked_by(client, call), context=contextvars.Context())


def test_clients_share_a_batch() -> None:
    """However much one has asked for before: each gets its turns, and who asks for little is done at once."""
    queue = queue_of(("many", [256] * 2000), ("other", [256] * 2000), ("few", [10]))
    assert taken(queue) == {"many": 512, "other": 256, "few": 10}
    assert taken(queue) == {"many": 512, "other": 512}
    queue = queue_of(*[("many", [256] * 10)] * 500, ("other", [256] * 10))
    assert taken(queue) == {"many": 512, "other": 512}


def test_a_short_request_passes_a_long_one_of_its_own_client() -> None:
    """Clients behind one proxy are one address: what has had its 4,096 tokens lets others pass."""
    queue = queue_of(("a", [TURN_TOKENS] * 100))
    for _ in range(4):
        queue.take(99.0)
    loop = asyncio.new_event_loop()
    queue.put(PendingRequest(Payload(["short"], [10]), 0.0, loop.create_future(), "a"))
    loop.close()
    assert queue.take(99.0)[0].units == ["short"]


def test_units_of_no_tokens_are_taken() -> None:
    assert [part.units for part in queue_of(("a", [0, 0]), ("b", [0])).take(0.0)] == [["0.0", "0.1"], ["1.0"]]


def test_a_batch_is_over_soon() -> None:
    queue = queue_of(("a", [100] * 100), budget=65_536)
    queue.rate = 5000.0
    assert taken(queue) == {"a": 500}  # 100 ms of it, in whole texts of 100 tokens
    queue.rate = 1.0
    assert taken(queue) == {"a": 200}  # less than 256 tokens would waste a core


@pytest.mark.parametrize("budget", [1024, 300])  # 300: after a text of 256 tokens nothing fits, and nothing is charged
def test_a_short_request_is_not_held_up_by_parts_of_long_ones(budget: int) -> None:
    queue = queue_of(("long", [256] * 100), budget=budget)
    queue.take(99.0)
    loop = asyncio.new_event_loop()
    for client in ("short", "other"):
        queue.put(PendingRequest(Payload(["a"], [5]), 0.0, loop.create_future(), client))
    loop.close()
    assert taken(queue) == {"short": 5, "other": 5}
    assert set(taken(queue)) == {"long"}


def test_the_wait_that_is_expected() -> None:
    """Others' work counts as far as they go before: as much as this client has asked for itself."""
    queue = queue_of(("many", [100] * 1000), ("few", [50]))
    assert queue.wait_s("new", 10) == 0  # nothing measured yet
    queue.rate = 1000.0
    assert queue.wait_s("new", 10) == pytest.approx(0.02)
    assert queue.wait_s("new", 100_000) == pytest.approx(100.05)
    assert queue.wait_s("few", 10) == pytest.approx(0.05 + 0.06)
    assert queue.wait_s("many", 10) == pytest.approx(4.096 + 0.05)
    with queue.expecting("coming", 5000):
        assert queue.wait_s("many", 10) == pytest.approx(4.096 + 0.05 + 4.106)
    assert not queue.arriving


def test_what_would_wait_too_long_is_refused_at_once() -> None:
    async def scene() -> Any:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held, QueueLimits(max_batch_tokens=100, deadline_s=5)))
        queue.rate = 10.0
        first = ask("a", lambda: batcher.submit(queue, work("first", tokens=100)))
        await until(lambda: queue.is_busy)
        second = ask("a", lambda: batcher.submit(queue, work("second", tokens=100)))
        await until(lambda: len(queue.waiting) == 1)
        with pytest.raises(Full, match="work for 10 s waiting, and requests wait 5 s; try again in 5 s"):
            await ask("a", lambda: batcher.submit(queue, work("third", tokens=100)))
        short = ask("b", lambda: batcher.submit(queue, work("short", tokens=1)))
        await until(lambda: len(queue.waiting) == 2)
        held.may_go.set()
        await asyncio.gather(first, second, short)
        await batcher.drain()
        return held.batches

    assert asyncio.run(scene()) == [["first"], ["short"], ["second"]]


def test_a_request_whose_turn_does_not_come_gets_its_answer() -> None:
    """The rate was wrong: nothing is done. At its deadline it is refused, and never computed."""

    async def scene() -> Any:
        held, batcher = Held(), Batcher()
        queue = batcher.add(ModelQueue("a", held, QueueLimits(deadline_s=0.1)))
        first = asyncio.ensure_future(batcher.submit(queue, work("first")))
        await until(lambda: queue.is_busy)
        with pytest.raises(Full, match=r"no room for this request within 0\.1 s"):
            await batcher.submit(queue, work("second"))
        held.may_go.set()
        assert (await first)[1] == ["<first>"]
        await batcher.drain()
        return held.batches

    assert asyncio.run(scene()) == [["first"]]


def waiting_for(go: threading.Event) -> Steps[bool]:
    yield
    return go.wait(10)


def test_long_texts_are_read_beside_short_ones() -> None:
    """And those that wait behind them too long are refused."""

    async def scene() -> None:
        go, batcher = threading.Event(), Batcher()
        long = asyncio.ensure_future(batcher.read(waiting_for(go), 10**6, 9.0))
        assert await batcher.read(steps("short"), 10, 9.0) == "short"
        with pytest.raises(Full, match="long texts wait for their turn"):
            await batcher.read(steps("never"), 10**6, 0.05)
        go.set()
        assert await long
        batcher.close()

    asyncio.run(scene())


def test_long_work_of_one_client_lets_another_in() -> None:
    """Steps of a whole second are under way; who comes then waits for one of them."""

    async def scene() -> tuple[int, int]:
        turns, done = Turns("texts"), 0

        def long() -> Steps[int]:
            nonlocal done
            for _ in range(50):
                end_s = time.thread_time() + PIECE_S
                while time.thread_time() < end_s:
                    pass
                done += 1
                yield
            return done

        working = ask("a", lambda: turns.run_steps(long()))
        await until(lambda: done > 1)
        before = done
        await ask("b", lambda: turns.run_steps(steps(None)))
        between = done - before
        whole = await working
        turns.close()
        return between, whole

    between, whole = asyncio.run(scene())
    assert (between <= 4, whole) == (True, 50)


def test_steps_that_nobody_waits_for_end() -> None:
    """A client that goes away leaves the thread to others."""

    async def scene() -> int:
        turns, taken = Turns("texts"), 0

        def endless() -> Steps[None]:
            nonlocal taken
            while True:
                taken += 1
                time.sleep(0.001)
                yield

        gone = ask("a", lambda: turns.run_steps(endless()))
        await until(lambda: taken > 100)
        gone.cancel()
        assert await ask("c", lambda: turns.run_steps(steps("next"))) == "next"
        before = taken
        await asyncio.sleep(0.05)
        turns.close()
        return taken - before

    assert asyncio.run(scene()) == 0


def test_turns_in_a_thread() -> None:
    """One client has ten writes waiting when another searches: it waits for one of them."""

    async def scene() -> list[str]:
        turns, order, go = Turns("index", 10.0), list[str](), threading.Event()

        def job(name: str) -> Any:
            def run() -> None:
                assert go.wait(10)
                threading.Event().wait(0.005)
                order.append(name)

            return run

        writes = [ask("writer", lambda n=n: turns.run(job(f"write {n}"))) for n in range(10)]
        await asyncio.sleep(0.01)
        search, gone = (ask("reader", lambda name=name: turns.run(job(name))) for name in ("search", "gone"))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*writes, search)
        with pytest.raises(ZeroDivisionError):
            await turns.run(lambda: 1 // 0)
        turns.mean_s = 6.0
        turns.lines = {"": [None, None]}  # type: ignore[dict-item]
        with pytest.raises(Full, match="The index has work for 12 s waiting; try again in 2 s"):
            await turns.run(lambda: None)
        turns.close()
        return order

    assert asyncio.run(scene()) == ["write 0", "search", *(f"write {n}" for n in range(1, 10))]


def test_idle_time_saves_up_nothing() -> None:
    shares = Shares()
    shares.enter("a")
    for _ in range(3):
        assert shares.next(["a"]) == "a"
        shares.charge("a", 10)
    shares.enter("b")
    assert shares.used == {"a": 30, "b": 20}
    shares.forget(["b"])
    assert "a" in shares.used  # it can't get rid of what it used by going away for a moment
    for _ in range(2):
        assert shares.next(["b"]) == "b"
        shares.charge("b", 20)
    shares.forget([])
    assert shares.used == {"b": 60}


def test_who_asks() -> None:
    address = ("10.1.2.3", 80)
    assert client_of({"client": address}) == "10.1.2.3"
    assert client_of({"client": address, "state": {"key": EVERYONE}}) == "10.1.2.3"
    assert client_of({"client": address, "state": {"key": Key("me", "0a")}}) == "key me"
    assert client_of({"client": None}) == ""


def test_limits_are_checked() -> None:
    with pytest.raises(InputError, match="deadline_s must be above 0, not 0"):
        QueueLimits(deadline_s=0)
