"""Overload: twice what the server can do, and 640 clients at once: each gets 200 or 429 in time, /health all along."""

import argparse
import asyncio
import time
from collections import Counter
from typing import Any

from attack.pulse import Pulse
from attack.serving import LOST, ask, memory_mb, quantile, served
from attack.verdict import Verdict
from benchmarks.corpora import corpora
from benchmarks.overload import Flood
from benchmarks.server import load, requests_of

TIMES, SECONDS = 2.0, 600.0  # of the capacity, and of the flood, at scale 1
CLIENTS, CLIENT_SECONDS = 640, 60.0
DEADLINE_S = 10.0
MAX_ANSWER_S = DEADLINE_S + 1.0  # the deadline is for the wait; computing comes on top
MAX_HEALTH_S = 0.1  # in the flood always, beside 640 new connections at once 99 times in 100
MAX_GROWTH = 1.15  # of memory, after the first quarter


def run(options: argparse.Namespace) -> Verdict:
    """Flood one server, then let 640 clients ask it."""
    verdict = Verdict("overload")
    with served(options) as server:
        asyncio.run(_flood(server.port, server.pid, max(20.0, SECONDS * options.scale), verdict))
        asyncio.run(_crowd(server.port, max(10.0, CLIENT_SECONDS * options.scale), verdict))
        verdict.expect(server.process.poll() is None, "the server ended")
    return verdict


async def _flood(port: int, pid: int, seconds: float, verdict: Verdict) -> None:
    requests = requests_of(corpora(2000, None)["mixed lengths"], 1)
    await load(port, requests, 32, 3)  # warms up
    capacity = (await load(port, requests, 32, min(20.0, seconds / 2)))["per_s"]
    flood = Flood(port, requests)
    async with Pulse(port) as pulse:
        memory = await flood.run(TIMES * capacity, seconds, pid)
    after = [each["rss_mb"] for each in memory[len(memory) // 4 :]] or [memory_mb(pid)]
    verdict.counts["flood"] = {
        "capacity a second": round(capacity, 1),
        "seconds": seconds,
        "MB after a quarter, at the end": [after[0], after[-1]],
        **_judged("flood", flood.taken, pulse, verdict, 1.0),
    }
    verdict.expect(after[-1] <= MAX_GROWTH * after[0], f"memory grew from {after[0]} to {after[-1]} MB")


async def _crowd(port: int, seconds: float, verdict: Verdict) -> None:
    taken: dict[str, list[float]] = {}
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        while time.monotonic() < end:
            answer = await ask(port, "POST", "/embed", {"inputs": [f"the words of client {number} " * 40] * 4})
            taken.setdefault(str(answer.status), []).append(answer.seconds)
            if answer.status == 429:
                await asyncio.sleep(min(float(answer.headers["retry-after"]), max(0.0, end - time.monotonic())))

    async with Pulse(port) as pulse:
        await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    verdict.counts[f"{CLIENTS} clients"] = _judged(f"{CLIENTS} clients", taken, pulse, verdict, 0.99)


def _judged(
    name: str, taken: dict[str, list[float]], pulse: Pulse, verdict: Verdict, health_part: float
) -> dict[str, Any]:
    """Return figures, and note what is lost, late, of another status, or kept that part of /health waiting."""
    statuses = Counter({status: len(values) for status, values in taken.items()})
    others = {status: number for status, number in statuses.items() if status not in ("200", "429")}
    verdict.expect(not others, f"{name}: answers other than 200 and 429: {others} ({LOST}: none came)")
    slowest = max((max(values) for values in taken.values()), default=0.0)
    verdict.expect(slowest <= MAX_ANSWER_S, f"{name}: an answer took {slowest:.1f} s")
    health, p99 = quantile(pulse.seconds, health_part), quantile(pulse.seconds, 0.99)
    num_slow = sum(seconds > MAX_HEALTH_S for seconds in pulse.seconds)
    shown_health = f"{health:.3f} s, {num_slow} of {len(pulse.seconds)} over {MAX_HEALTH_S} s"
    verdict.expect(health <= MAX_HEALTH_S, f"{name}: /health took {shown_health}")
    seconds = {
        status: {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99), "max": quantile(values, 1)}
        for status, values in taken.items()
    }
    shown = {"p50": quantile(pulse.seconds, 0.5), "p99": p99, "max": quantile(pulse.seconds, 1)}
    shown |= {"asked": len(pulse.seconds), "slow": num_slow}
    return {"answers": dict(statuses), "seconds": seconds, "/health in s": shown}
