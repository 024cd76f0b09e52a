"""Servers on this machine: ours, FastAPI with sentence-transformers, and infinity-emb where it is installed.

    python -m benchmarks.server [--clients 32] [--seconds 10] [--rounds 3] [--texts 1] [--data FOLDER] [--out FILE.json]

All serve POST /v1/embeddings of the same model on the same cores; clients are connections of one light process, which
send their next request when they have the last one's answer. One server is asked at a time, in turns; the others wait
without work. Bare times say nothing about another machine: read the ratios.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import corpora
from benchmarks.models import add_model, fill_model
from benchmarks.peers.table import ROOT, VENVS

NAME = "model"  # what every server calls it
START_S = 120
MEASURED = ("per_s", "p50_ms", "p99_ms", "cpu_ms")
INFINITY = Path(os.environ.get("INFINITY", VENVS / "infinity" / "bin" / "infinity_emb"))


def plain_app(path: str) -> Any:
    """Serve as most people write it: one route, one call of `encode` a request, in FastAPI's threads."""
    from fastapi import FastAPI
    from sentence_transformers import SentenceTransformer

    model, app = SentenceTransformer(path, device="cpu"), FastAPI()

    @app.get("/health")
    def health() -> dict[str, str]:
        return {}

    @app.post("/v1/embeddings")
    def embeddings(body: dict[str, Any]) -> dict[str, Any]:
        rows = model.encode(body["input"]).tolist()
        return {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}

    return app


def commands(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return the command of each server; the port comes last."""
    model = str(options.model)
    ours = [sys.executable, "-m", "munjang", "serve", "--quiet", "--model", f"{NAME}={model}"]
    found = {
        "sentence-transformers": [sys.executable, "-m", "benchmarks.server", "--plain", "--model", model],
        "munjang": [*ours, "--port"],
        "munjang int8": [*ours, "--dtype", "int8", "--port"],
    }
    if INFINITY.exists():
        served = ["--model-id", model, "--served-model-name", NAME, "--device", "cpu", "--engine", "torch"]
        served += ["--no-bettertransformer"]  # what it turns on needs an older transformers
        found["infinity"] = [str(INFINITY), "v2", *served, "--url-prefix", "/v1", "--port"]
    found["sentence-transformers"] += ["--port"]
    return {name: command for name, command in found.items() if not options.only or name in options.only}


def free_ports(count: int) -> list[int]:
    """Different ports that nobody uses now: all are held before one is let go."""
    with ExitStack() as held:
        bound = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in bound]


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bytes]:
    """One request on a connection that stays open: status and body. A real client would cost more than the servers."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].split("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


def requests_of(texts: list[str], num_texts: int) -> list[bytes]:
    """Ready bytes of requests."""
    found = []
    for start in range(0, len(texts) - num_texts + 1, num_texts):
        body = json.dumps({"model": NAME, "input": texts[start : start + num_texts]}).encode()
        head = "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
        found.append(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return found


async def load(port: int, requests: list[bytes], clients: int, seconds: float) -> dict[str, Any]:
    """Ask for so long; the rate of answers and the seconds of each."""
    taken, statuses, next_one = list[float](), dict[int, int](), count()
    end = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        while (start := time.perf_counter()) < end:
            status, _ = await post(reader, writer, requests[next(next_one) % len(requests)])
            taken.append(time.perf_counter() - start)
            statuses[status] = statuses.get(status, 0) + 1
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*[client() for _ in range(clients)])
    took = time.perf_counter() - start
    p50, p99 = np.percentile(taken, [50, 99])
    return {"per_s": len(taken) / took, "p50_ms": 1000 * p50, "p99_ms": 1000 * p99, "statuses": statuses}


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Seconds of computing that a server has used: on a shared machine they say more than the clock."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started(command: list[str], port: int, log: Path) -> subprocess.Popen[bytes]:
    """A server that answers."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    environment["OMP_WAIT_POLICY"] = "passive"  # for all: threads that spin while they wait take the others' cores
    with log.open("wb") as file:
        process = subprocess.Popen([*command, str(port)], stdout=file, stderr=file, env=environment, cwd=ROOT)
    end = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            if process.poll() is None:  # else somebody else answers there
                return process
            raise ConnectionError
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{command[0]} did not start; see {log}") from None
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model(parser)
    for name, default in (("--clients", 32), ("--seconds", 10), ("--rounds", 3), ("--texts", 1), ("--port", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus", default="mixed lengths", help="or English short, Korean short, long documents")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    fill_model(options)
    if options.plain:
        import uvicorn

        uvicorn.run(plain_app(str(options.model)), port=options.port, log_level="warning")
        return
    for name, found in measure(options).items():
        print(name, json.dumps(found))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Every server in turns, round by round; medians."""
    texts = corpora(4000, options.data)[options.corpus]
    random.Random(4).shuffle(texts)
    requests = requests_of(texts, options.texts)
    names = list(commands(options))
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    running: dict[str, subprocess.Popen[bytes]] = {}
    rounds: list[dict[str, Any]]
    try:
        for name, command in commands(options).items():
            log = Path(f"/tmp/munjang-bench-{ports[name]}.log")
            running[name] = started(command, ports[name], log)
            asyncio.run(load(ports[name], requests, options.clients, 2))  # warm
        rounds = []
        for _ in range(options.rounds):
            rounds.append({})
            for name, port in ports.items():
                before = cpu_s(running[name])
                found = asyncio.run(load(port, requests, options.clients, options.seconds))
                used = cpu_s(running[name]) - before
                rounds[-1][name] = found | {"cpu_ms": 1000 * used / sum(found["statuses"].values())}
    finally:
        for process in running.values():
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    result = {
        name: {key: round(float(np.median([each[name][key] for each in rounds])), 2) for key in MEASURED}
        | {"statuses": [each[name]["statuses"] for each in rounds]}
        for name in ports
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=1))
    return result


if __name__ == "__main__":
    main()
