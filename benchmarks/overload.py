"""Our server at twice its capacity: every request is answered, with 200 or 429, and memory stays where it is.

    python -m benchmarks.overload [--minutes 10] [--times 2] [--model FOLDER] [--dtype int8] [--out FILE.json]

First the capacity is measured with 32 clients that wait for their answers. Then requests come at a fixed rate of
`--times` as many, whether others are answered or not, as from clients that know nothing of each other.
"""

import argparse
import asyncio
import json
import signal
import statistics
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.corpora import corpora
from benchmarks.models import add_model, fill_model
from benchmarks.server import commands, free_ports, load, post, requests_of, started
from munjang.engine.measure import processor

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LIMIT_S = 60  # a request without an answer after this is lost
EVERY_S = 10


class Flood:
    """Requests at a fixed rate over connections that are used again."""

    def __init__(self, port: int, requests: list[bytes]) -> None:
        self.port, self.requests = port, requests
        self.idle: list[Connection] = []
        self.answers: Counter[str] = Counter()
        self.taken: dict[str, list[float]] = {}

    async def one(self, place: int) -> None:
        """Ask once."""
        start = time.perf_counter()
        request = self.requests[place % len(self.requests)]
        try:
            try:
                answer = await self._ask(self.idle.pop() if self.idle else await self._open(), request)
            except (OSError, EOFError):  # it was idle, and closed: every HTTP client asks again on another one
                answer = await self._ask(await self._open(), request)
        except (OSError, EOFError, TimeoutError) as error:
            answer = type(error).__name__
        self.answers[answer] += 1
        self.taken.setdefault(answer, []).append(time.perf_counter() - start)

    async def _open(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)

    async def _ask(self, connection: Connection, request: bytes) -> str:
        status, _ = await asyncio.wait_for(post(*connection, request), LIMIT_S)
        self.idle.append(connection)
        return str(status)

    async def run(self, rate: float, seconds: float, pid: int) -> list[dict[str, float]]:
        """Ask for so long; memory by time."""
        memory: list[dict[str, float]] = []
        tasks: set[asyncio.Task[None]] = set()
        start = time.perf_counter()
        place = 0
        while (now := time.perf_counter() - start) < seconds:
            while place < now * rate:
                task = asyncio.create_task(self.one(place))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                place += 1
            if now >= len(memory) * EVERY_S:
                memory.append({"s": round(now), "rss_mb": rss_mb(pid), "answers": sum(self.answers.values())})
            await asyncio.sleep(0.005)
        await asyncio.gather(*tasks)
        return memory


def rss_mb(pid: int) -> float:
    """Memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000, 1)


async def flooded(options: argparse.Namespace, port: int, pid: int) -> dict[str, Any]:
    """Capacity, then the flood, then one more question."""
    requests = requests_of(corpora(2000, options.data)["mixed lengths"], 1)
    await load(port, requests, 32, 3)  # warms up
    capacity = (await load(port, requests, 32, 20))["per_s"]
    flood = Flood(port, requests)
    memory = await flood.run(options.times * capacity, 60 * options.minutes, pid)
    after = await load(port, requests, 1, 2)
    middle = memory[len(memory) // 4 :]
    return {
        "capacity_per_s": round(capacity, 1),
        "offered_per_s": round(options.times * capacity, 1),
        "answers": dict(flood.answers),
        "answered_200_per_s": round(flood.answers["200"] / (60 * options.minutes), 1),
        "seconds of an answer": {
            status: {"median": round(statistics.median(each), 4), "longest": round(max(each), 3)}
            for status, each in flood.taken.items()
        },
        "rss_mb": {"first": memory[0]["rss_mb"], "after a quarter": middle[0]["rss_mb"], "last": memory[-1]["rss_mb"]},
        "afterwards": after["statuses"],
        "memory": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model(parser)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--times", type=float, default=2)
    parser.add_argument("--dtype", choices=["float32", "int8"], default="int8")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    fill_model(options)
    options.only = ["munjang int8" if options.dtype == "int8" else "munjang"]
    [command] = commands(options).values()
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        server = started(command, port, Path(folder) / "log")
        try:
            found = asyncio.run(flooded(options, port, server.pid))
        finally:
            server.send_signal(signal.SIGINT)
            code = server.wait(30)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "command": f"python -m benchmarks.overload --minutes {options.minutes:g} --times {options.times:g}",
        "model": f"{options.name}, {options.dtype}",
        "exit code": code,
        **found,
    }
    print(json.dumps({key: value for key, value in record.items() if key != "memory"}, indent=1))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
