"""Connections that are half open, that trickle or never read: /health is served, and every descriptor comes back."""

import argparse
import asyncio
import json
import time

from attack.pulse import Pulse
from attack.serving import ask, exchange, health, memory_mb, num_files, served
from attack.verdict import Verdict

MAX_FILES = 1024
MAX_HEALTH_S = 1.0
LIMITS = {
    "header_timeout_s": 3,
    "body_timeout_s": 3,
    "answer_timeout_s": 3,
    "min_answer_bytes_per_s": 1_000_000,  # so that an answer of 4 MB may take 7 s to be read
    "deadline_s": 100,  # so that all large answers are computed, one after the other
}
HALF = b"POST /embed HTTP/1.1\r\nHost: localhost\r\n"
NUM_UNREAD, UNREAD_TEXTS, UNREAD_S = 40, 500, 90.0  # answers of 4 MB that nobody reads, until all are written
MAX_MEMORY_MB = 200  # more than before: each is gone before all are there


def run(options: argparse.Namespace) -> Verdict:
    """Send everything to one server that may open 1,024 files."""
    verdict = Verdict("connections")
    limits = [word for name, value in LIMITS.items() for word in ("--limit", f"{name}={value}")]
    with served(options, *limits, max_files=MAX_FILES) as server:
        asyncio.run(_attack(server.port, server.pid, verdict))
        verdict.expect(server.process.poll() is None, "the server ended")
    return verdict


async def _attack(port: int, pid: int, verdict: Verdict) -> None:
    await ask(port, "POST", "/embed", {"inputs": "a"})
    files = num_files(pid)
    kinds = {
        "1,100 that send nothing": (1100, b""),
        "1,100 half heads": (1100, HALF),
        "200 bodies that end half-way": (200, HALF + b"Content-Length: 1000\r\n\r\n" + b"x" * 500),
    }
    for name, (number, sent) in kinds.items():
        writers = [await _opened(port, sent) for _ in range(number)]
        async with Pulse(port) as pulse:
            await asyncio.sleep(5)
        verdict.counts[name] = {"slowest /health in s": round(pulse.slowest_s(), 3), "files": num_files(pid)}
        verdict.expect(pulse.slowest_s() < MAX_HEALTH_S, f"{name}: /health took {pulse.slowest_s():.2f} s")
        for writer in writers:
            if writer is not None:
                writer.close()
    await _unread(port, pid, verdict)
    await asyncio.sleep(6)
    verdict.counts["files"] = {"before": files, "afterwards": num_files(pid)}
    verdict.expect(num_files(pid) < files + 50, f"{num_files(pid)} files are open afterwards, {files} before")
    verdict.expect(await health(port) < MAX_HEALTH_S, "/health does not answer afterwards")
    slow = await exchange(port, HALF + b"Content-Length: 9\r\n\r\n1")
    verdict.expect(slow.status == 408, f"a body that does not come gets {slow.status}, not 408")


async def _unread(port: int, pid: int, verdict: Verdict) -> None:
    """Ask for large answers and read none of them: the server writes each, waits a while and lets it go."""
    body = json.dumps({"inputs": ["a"] * UNREAD_TEXTS}).encode()
    head = HALF + b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    request = head + b"\r\n" + body
    whole = await exchange(port, head + b"Connection: close\r\n\r\n" + body)
    before_mb, answered, files = memory_mb(pid), await _num_answered(port), num_files(pid)
    writers = [await _opened(port, request) for _ in range(NUM_UNREAD)]
    most_mb, end = 0.0, time.monotonic() + UNREAD_S
    async with Pulse(port) as pulse:
        while time.monotonic() < end and (await _num_answered(port) < answered + NUM_UNREAD or num_files(pid) > files):
            await asyncio.sleep(0.5)
            most_mb = max(most_mb, memory_mb(pid))
    num_answered, more = await _num_answered(port) - answered, round(most_mb - before_mb)
    open_still = num_files(pid) - files
    for writer in writers:
        if writer is not None:
            writer.close()
    verdict.counts[f"{NUM_UNREAD} answers that nobody reads"] = {
        "MB of each": round(len(whole.body) / 1e6, 1),
        "written": num_answered,
        "MB more": more,
        "slowest /health in s": round(pulse.slowest_s(), 3),
    }
    verdict.expect(whole.status == 200, f"a large answer: {whole.status}")
    verdict.expect(num_answered == NUM_UNREAD, f"{num_answered} of {NUM_UNREAD} answers that nobody reads were written")
    verdict.expect(open_still <= 0, f"{open_still} connections that nobody reads from are still open")
    verdict.expect(more < MAX_MEMORY_MB, f"answers that nobody reads take {more} MB")
    verdict.expect(pulse.slowest_s() < MAX_HEALTH_S, f"beside them /health took {pulse.slowest_s():.2f} s")


async def _num_answered(port: int) -> int:
    """Return how many requests to /embed the server has computed and answered."""
    lines = (await ask(port, "GET", "/metrics")).body.decode().splitlines()
    found = [line.split()[-1] for line in lines if line.startswith('te_request_success{method="/embed"}')]
    return int(float(found[0])) if found else 0


async def _opened(port: int, sent: bytes) -> asyncio.StreamWriter | None:
    """Open a connection and send; None where the server has closed it at once."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(sent)
        await writer.drain()
    except OSError:
        return None
    return writer
