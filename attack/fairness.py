"""Fairness: what one client's worst requests cost another's short ones, beside what these take alone."""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attack.http import bodies
from attack.serving import ELSEWHERE, LOST, ask, quantile, served
from attack.verdict import Verdict
from munjang import checkpoint

MAX_DELAY_S = 0.5
AT_ONCE = 4  # worst requests that are under way all the time
EVERY_S = 0.05  # between short requests
SECONDS = 20.0  # of each worst request, at scale 1
SHORT = (("/embed", {"inputs": "a short text"}), ("/search", {"query": "a short query"}))
WORDS = "fair shares let many clients ask one server for vectors of their texts at once " * 2000


def worst() -> dict[str, tuple[str, Any]]:
    """Return the worst requests that are known, each within the limits or just beyond."""
    wrong = bodies()
    return {
        "2,000 long texts": ("/embed", {"inputs": [WORDS[n % 50 :][:900] for n in range(2000)]}),
        "18 documents of 95,000 characters": (
            "/documents",
            {"documents": [{"text": WORDS[n:][:95_000]} for n in range(18)]},
        ),
        "a query of 3,900 characters": ("/search", {"query": WORDS[:3900], "k": 1000, "candidates": 1000}),
        "a filter of 700 tests": ("/search", {"query": "a", "k": 1000, "where": " or ".join(["year = 1"] * 700)}),
        "20 long texts, token by token": ("/embed_all", {"inputs": [WORDS[:90_000]] * 20}),
        "20 long texts to tokenize": ("/tokenize", {"inputs": [WORDS[:90_000]] * 20}),
        "2,000 pairs": ("/rerank", {"query": WORDS[:300], "texts": [WORDS[n % 50 :][:800] for n in range(2000)]}),
        "64 texts with each other": ("/similarities", {"texts": [WORDS[n:][:25_000] for n in range(64)]}),
        "390,000 nulls": wrong["390,000 nulls for texts"],
        "650,000 empty documents": wrong["650,000 empty documents"],
    }


def run(options: argparse.Namespace) -> Verdict:
    """Send each to one server, from one address, and short requests from another."""
    verdict = Verdict("fairness")
    with served(options, "--reranker", checkpoint.default("cross")) as server:
        asyncio.run(_attack(server.port, max(3.0, SECONDS * options.scale), verdict))
        verdict.expect(server.process.poll() is None, "the server ended")
    return verdict


async def _attack(port: int, seconds: float, verdict: Verdict) -> None:
    texts = [{"text": f"{WORDS[n:][:300]} {n}", "metadata": {"year": n % 9}} for n in range(500)]
    await ask(port, "POST", "/documents", {"documents": texts})
    await _short(port, 3)  # warms up
    alone = await _short(port, seconds)
    verdict.counts["alone"] = _figures(alone)
    for name, (path, body) in worst().items():
        async with flooded(port, path, body) as answers:
            await asyncio.sleep(1)
            taken = await _short(port, seconds)
        verdict.counts[name] = {**_figures(taken), "its own answers": answers}
        for route, values in taken.items():
            delay_s = quantile(values, 0.99) - quantile(alone[route], 0.5)
            verdict.expect(delay_s <= MAX_DELAY_S, f"{name} delay {route} by {delay_s:.2f} s (p99)")
        verdict.expect(str(LOST) not in answers, f"{name}: {answers.get(str(LOST))} without an answer")


@asynccontextmanager
async def flooded(port: int, path: str, body: Any) -> AsyncIterator[dict[str, int]]:
    """Send a body all the time, from a process of its own: writing 2 MB holds nobody up here. Gives its answers."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        command = [sys.executable, "-m", "attack.fairness", str(port), path, file.name]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)  # it has begun
        answers: dict[str, int] = {}
        try:
            yield answers
        finally:
            out, _ = await asyncio.to_thread(process.communicate, "\n")
            answers |= json.loads(out or "{}")


async def _short(port: int, seconds: float) -> dict[str, list[float]]:
    """Send short requests one after another; seconds of each, infinity for one that is refused."""
    taken: dict[str, list[float]] = {path: [] for path, _ in SHORT}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path, body in SHORT:
            answer = await ask(port, "POST", path, body)
            taken[path].append(answer.seconds if answer.status == 200 else float("inf"))
            await asyncio.sleep(EVERY_S)
    return taken


async def _flood(port: int, path: str, content: bytes) -> Counter[str]:
    """Keep some requests under way until a line comes in; return how many got which answer."""
    answers: Counter[str] = Counter()

    async def again() -> None:
        while True:
            answer = await ask(port, "POST", path, content, source=ELSEWHERE)
            answers[str(answer.status)] += 1
            if answer.status != 200:
                await asyncio.sleep(0.02)

    floods = [asyncio.create_task(again()) for _ in range(AT_ONCE)]
    await asyncio.to_thread(sys.stdin.readline)
    for flood in floods:
        flood.cancel()
    await asyncio.gather(*floods, return_exceptions=True)
    return answers


def _figures(taken: dict[str, list[float]]) -> dict[str, Any]:
    parts = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {path: {name: quantile(values, part) for name, part in parts.items()} for path, values in taken.items()}


if __name__ == "__main__":
    print("", flush=True)
    print(json.dumps(asyncio.run(_flood(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]).read_bytes()))))
