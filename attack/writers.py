"""Two writers and two readers on one index: no reader fails, nothing is lost or doubled, the newest version stays."""

import argparse
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from attack.operations import Operation, documents, doubled
from attack.verdict import Verdict
from tests.models import make_model
from tests.stores.servers import postgres_place

SECONDS = 60.0  # on each engine, at scale 1
SHARED, OWN = range(20), (range(100, 120), range(200, 220))  # documents of both writers, and of each
PROCESSES = multiprocessing.get_context("spawn")


def run(options: argparse.Namespace) -> Verdict:
    """Let them work side by side on every engine that takes two writers."""
    verdict = Verdict("writers")
    seconds = max(8.0, SECONDS * options.scale)
    with tempfile.TemporaryDirectory() as folder:
        model = make_model("bert", Path(folder) / "model")
        for engine in ("LanceDB", "PostgreSQL"):
            address = postgres_place() if engine == "PostgreSQL" else str(Path(folder) / "index")
            _attack(engine, Operation(Path(folder), address, model, model), seconds, verdict)
    return verdict


def _attack(engine: str, place: Operation, seconds: float, verdict: Verdict) -> None:
    with place.index() as index:
        for numbers in (SHARED, *OWN):
            index.upsert(*documents(numbers, 0), progress=False)
    workers = [(_write, place, seconds, numbers) for numbers in OWN] + [(_read, place, seconds, SHARED)] * 2
    running = []
    for work, *given in workers:
        receive, send = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=work, args=(*given, send))
        process.start()
        send.close()
        running.append((process, receive))
    answers = []
    for process, receive in running:
        try:
            answers.append(receive.recv())
        except EOFError:
            verdict.expect(False, f"{engine}: a process ended without an answer")
        process.join()
    found = place.stored()
    for answer in answers:
        verdict.expect(answer["error"] is None, f"{engine}: {answer['error']}")
        for number in answer["numbers"]:
            version = min(found.get(str(number), [-1]))
            verdict.expect(
                version == answer["version"], f"{engine}: {number} has version {version}, not {answer['version']}"
            )
    for wrong in doubled(found):
        verdict.expect(False, f"{engine}: {wrong}")
    verdict.expect(len(found) == len(SHARED) + sum(map(len, OWN)), f"{engine}: {len(found)} documents are left")
    verdict.counts[engine] = {
        "writes": [a["count"] for a in answers[:2]],
        "searches": [a["count"] for a in answers[2:]],
    }


def _write(place: Operation, seconds: float, own: range, send: Connection) -> None:
    version, error = 0, None
    try:
        with place.index() as index:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                index.upsert(*documents(own, version + 1), progress=False)
                version += 1
                index.upsert(*documents(SHARED, version), progress=False)
    except Exception as failed:
        error = f"a writer failed: {type(failed).__name__}: {failed}"
    send.send({"error": error, "numbers": [*own], "version": version, "count": 2 * version})


def _read(place: Operation, seconds: float, numbers: range, send: Connection) -> None:
    count, error = 0, None
    try:
        with place.index() as index:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                hits = index.search("document 7 of version 1", k=30)
                ids = [hit.document_id for hit in hits]
                if len(set(ids)) != len(ids) or len(ids) != 30:
                    error = f"a reader found {len(ids)} hits, {len(set(ids))} distinct"
                    break
                count += 1
    except Exception as failed:
        error = f"a reader failed: {type(failed).__name__}: {failed}"
    send.send({"error": error, "numbers": [], "version": 0, "count": count})
