"""A real `munjang serve` over a small index, and requests to it without a client library in between."""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.models import fill_model
from benchmarks.server import free_ports, started

MODEL = "model"  # its name in requests
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"  # two clients
WAIT_S = 120.0  # for an answer; one that takes longer is lost
LOST = 0  # status of a request without an answer


@dataclass(frozen=True)
class Answer:
    """An answer and how long it took; status LOST: none came."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float


@dataclass(frozen=True)
class Served:
    """A server that runs as a process of its own."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def served(options: argparse.Namespace, *arguments: str, max_files: int | None = None) -> Iterator[Served]:
    """Serve a model and an empty index until the block ends; `max_files`: descriptors that the process may open."""
    fill_model(options)
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        index, log = Path(folder) / "index", Path(folder) / "log"
        command = [sys.executable, "-m", "munjang", "serve", "--quiet", "--model", f"{MODEL}={options.model}"]
        command += ["--index", str(index), *arguments, "--port"]
        if max_files is not None:
            command = ["bash", "-c", f'ulimit -n {max_files}; exec "$@"', "bash", *command]
        process = started(command, port, log)
        try:
            _wait_until_ready(port)
            yield Served(port, process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(port: int) -> None:
    """Wait for the models: the socket takes connections before they are loaded."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=WAIT_S):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


async def ask(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    headers: Sequence[tuple[str, str]] = (),
    wait_s: float = WAIT_S,
    source: str = HERE,
) -> Answer:
    """Send one request on a connection of its own, from an address. A body that is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = {"Host": "localhost", "Connection": "close", "Content-Type": "application/json"}
    fields |= {"Content-Length": str(len(content))} | dict(headers)
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    return await exchange(port, head.encode("latin-1") + content, wait_s, source)


async def exchange(port: int, request: bytes, wait_s: float = WAIT_S, source: str = HERE) -> Answer:
    """Send bytes as they are and read until the server closes."""
    start = time.perf_counter()
    try:
        async with asyncio.timeout(wait_s):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26, local_addr=(source, 0))
            try:
                writer.write(request)
                raw = await _answer(reader)
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError):
        raw = b""
    head, _, content = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split()[1]) if first.startswith("HTTP/") else LOST
    return Answer(status, fields, content, time.perf_counter() - start)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """Read up to the end that the answer's own length gives, or until the server closes."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    return head + (await reader.readexactly(int(length)) if length.strip() else await reader.read())


async def health(port: int) -> float:
    """Return the seconds that /health takes; infinity where it gives no 200."""
    answer = await ask(port, "GET", "/health", wait_s=60)
    return answer.seconds if answer.status == 200 else float("inf")


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000, 1)


def num_files(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def quantile(values: Sequence[float], part: float) -> float:
    """Return a quantile in seconds, rounded to milliseconds; infinity of nothing."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 3) if ordered else float("inf")
