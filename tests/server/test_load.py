"""Many clients at once, too many of them, and clients that go away."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
import httpx

from munjang.server.limits import QueueLimits
from munjang.server.service import Service
from tests.server.running import Running, Watched, running
from tests.texts import ENGLISH, KOREAN


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


async def ask_all(
    server: Running, requests: list[list[str]], after: Callable[[list[Any]], bool] | None = None
) -> list[Any]:
    """Ask everything at once; `after`, of the calls, says when the server's model may go on."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=20, limits=limits) as client:
        posts = [client.post("/embed", json={"inputs": texts, "normalize": False}) for texts in requests]
        calls = [asyncio.ensure_future(each) for each in posts]
        if after is not None:
            await until(lambda: after(calls))
            server.service.embedders[0].may_go.set()  # type: ignore[attr-defined]
        return list(await asyncio.gather(*calls))


def test_32_clients_get_their_own_vectors(model: BiEncoder) -> None:
    """The same as `encode` alone gives, within 1e-5: another batch adds in another order. And they share batches."""
    pieces = [*ENGLISH, *KOREAN]
    requests = [
        [" ".join(pieces[(client + place) % len(pieces)] for _ in range(1 + (client * 7 + place) % 5)) + f" {client}"]
        * (1 + client % 3)
        for client in range(32)
        for place in range(3)
    ]
    embedder = Watched("tiny", model)
    # neither a slow first batch nor a busy machine may make batches small or refuse what waits
    limits = QueueLimits(512, max_batch_ms=60_000, deadline_s=600)
    with running(Service([embedder], queue_limits=limits)) as started:
        answers = asyncio.run(ask_all(started, requests))
    for texts, answer in zip(requests, answers, strict=True):
        assert answer.status_code == 200
        np.testing.assert_allclose(answer.json(), model.encode(texts, normalize=False, progress=False), atol=1e-5)
    assert sum(embedder.sizes) == sum(map(len, requests))
    assert len(embedder.sizes) < len(requests)


def test_overload_is_429_and_nothing_is_lost(model: BiEncoder) -> None:
    embedder = Watched("tiny", model)
    embedder.may_go.clear()
    with running(Service([embedder], queue_limits=QueueLimits(max_queue=4))) as started:
        texts = [[f"text {n}"] for n in range(12)]
        answers = asyncio.run(ask_all(started, texts, lambda calls: sum(call.done() for call in calls) == 8))
        statuses = [answer.status_code for answer in answers]
        assert sorted(statuses) == [200] * 4 + [429] * 8
        for answer in answers:
            if answer.status_code == 429:
                assert 1 <= int(answer.headers["retry-after"]) <= 60
                assert answer.json()["error_type"] == "Overloaded"
        body = {"model": "tiny", "input": "again"}
        assert started.client.post("/v1/embeddings", json=body).status_code == 200
        assert sum(embedder.sizes) == 5
        assert started.num_inside() == 0


def test_work_of_a_client_that_went_away_is_not_computed(model: BiEncoder) -> None:
    embedder = Watched("tiny", model)
    with running(Service([embedder])) as started:
        embedder.may_go.clear()
        queue = started.service.batcher.queues["tiny"]

        async def scene() -> None:
            async with httpx.AsyncClient(base_url=started.url, timeout=20) as client:
                first = asyncio.ensure_future(client.post("/embed", json={"inputs": "first"}))
                await until(lambda: queue.is_busy)
                patience = httpx.Timeout(20, read=0.5)
                async with httpx.AsyncClient(base_url=started.url, timeout=patience) as impatient:
                    with pytest.raises(httpx.ReadTimeout):
                        await impatient.post("/embed", json={"inputs": ["a", "b", "c"]})
                await until(lambda: queue.num_inside == 1)
                last = asyncio.ensure_future(client.post("/embed", json={"inputs": ["x", "y"]}))
                await until(lambda: len(queue.waiting) == 2)  # who went away is left out when a batch is made
                embedder.may_go.set()
                assert [(await each).status_code for each in (first, last)] == [200, 200]

        asyncio.run(scene())
        assert embedder.sizes == [1, 2]
        assert 'te_request_cancelled{method="/embed"} 1' in started.client.get("/metrics").text
        assert started.num_inside() == 0


def test_one_bad_text_fails_alone(model: BiEncoder) -> None:
    class Picky(Watched):
        def compute(self, parts: Any) -> Any:
            found = super().compute(parts)
            if any(len(part.units) == 3 for part in parts):
                raise RuntimeError("three")
            return found

    embedder = Picky("tiny", model)
    embedder.may_go.clear()
    with running(Service([embedder])) as started:
        texts = [["a"] * (1 + n % 4) for n in range(8)]
        answers = asyncio.run(ask_all(started, texts, lambda calls: started.num_inside() == 8))
    assert [answer.status_code for answer in answers] == [200, 200, 424, 200] * 2
