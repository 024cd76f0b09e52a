"""Many requests at once enter the application a few at a time; health is served in between."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("fastapi")

from munjang.server.gate import MAX_AT_ONCE, Gate
from munjang.server.limits import AccessRules
from munjang.server.metrics import Metrics
from munjang.server.middleware import Middleware


def test_a_few_in_each_round_the_first_first() -> None:
    async def scene() -> tuple[list[int], list[int]]:
        gate, entered, rounds = Gate(3), list[int](), list[int]()

        async def one(number: int) -> None:
            await gate.enter()
            entered.append(number)

        tasks = [asyncio.create_task(one(number)) for number in range(10)]
        tasks[4].cancel()  # its client is gone
        while len(entered) < 9:
            await asyncio.sleep(0)
            rounds.append(len(entered))
        await asyncio.gather(*tasks, return_exceptions=True)
        await gate.enter()  # and again
        return entered, rounds

    entered, rounds = asyncio.run(scene())
    assert entered == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert all(after - before <= 3 for before, after in zip([0, *rounds], rounds, strict=False))


def test_health_waits_for_a_few_of_many_requests() -> None:
    """Without the gate all 200 would have been answered before it, as they came first."""

    async def scene() -> tuple[int, int]:
        order: list[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            order.append(scope["path"])

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            pass

        middleware = Middleware(app, AccessRules(hosts=()), Metrics())

        async def ask(path: str) -> None:
            scope = {"type": "http", "method": "POST", "path": path, "headers": [], "client": ("127.0.0.1", 1)}
            await middleware(scope, receive, send)

        await asyncio.gather(*(ask("/embed") for _ in range(200)), ask("/health"))
        return order.index("/health"), len(order)

    place, number = asyncio.run(scene())
    assert number == 201
    assert place <= 4 * MAX_AT_ONCE
