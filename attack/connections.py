"""Connections that are half open, that trickle or never read: /health is served, and every descriptor comes back."""

import argparse
import asyncio
import json

from attack.pulse import Pulse
from attack.serving import ask, exchange, health, memory_mb, num_files, served
from attack.verdict import Verdict

MAX_FILES = 1024
MAX_HEALTH_S = 1.0
LIMITS = ("--limit", "header_timeout_s=3", "--limit", "body_timeout_s=3", "--limit", "answer_timeout_s=3")
HALF = b"POST /embed HTTP/1.1\r\nHost: localhost\r\n"
MAX_MEMORY_MB = 700  # more than before, while 50 answers of 20 MB are not read


def run(options: argparse.Namespace) -> Verdict:
    """Send everything to one server that may open 1,024 files."""
    verdict = Verdict("connections")
    with served(options, *LIMITS, max_files=MAX_FILES) as server:
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
    """Ask for large answers and read none of them."""
    body = json.dumps({"inputs": ["a"] * 2000}).encode()
    request = HALF + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    before = memory_mb(pid)
    writers = [await _opened(port, request) for _ in range(50)]
    most = 0.0
    async with Pulse(port) as pulse:
        for _ in range(40):
            await asyncio.sleep(0.5)
            most = max(most, memory_mb(pid))
    for writer in writers:
        if writer is not None:
            writer.close()
    more = round(most - before)
    verdict.counts["50 answers of 15 MB that nobody reads"] = {
        "MB more": more,
        "slowest /health in s": round(pulse.slowest_s(), 3),
    }
    verdict.expect(more < MAX_MEMORY_MB, f"answers that nobody reads take {more} MB")


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
