"""Kill -9 at random moments of everything that writes: nothing that was confirmed is lost, nothing is there twice."""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from attack.child import PROCESSES
from attack.operations import ON_ENGINES, OPERATIONS, Operation
from attack.verdict import Verdict
from tests.models import make_model
from tests.stores.servers import postgres_place

NUM_KILLS = 30  # of each operation on each engine, at scale 1: 510 in all
KILLS_OF_A_ROUND = 6  # then it is the next operation's turn, so that a run that is ended early has seen all
KILLS_OF_A_PLACE = 3  # then it runs to its end, and is checked once more
MAX_ENDED = 3  # runs that end before their moment, for each that is killed
MAX_WHOLE_S = 300.0  # of a run that is not killed


def run(options: argparse.Namespace) -> Verdict:
    """Kill every operation on every engine."""
    os.environ["PYTHONWARNINGS"] = "ignore::RuntimeWarning"  # LanceDB's, that it was imported before a fork
    PROCESSES.set_forkserver_preload(["attack.operations", "munjang.stores.lance.store"])
    verdict, draws = Verdict("kills"), random.Random(options.seed)
    number = max(2, round(NUM_KILLS * options.scale))
    with tempfile.TemporaryDirectory() as folder:
        models = [make_model("bert", Path(folder) / name, pooling=name) for name in ("mean", "cls")]
        for upto in range(KILLS_OF_A_ROUND, number + KILLS_OF_A_ROUND, KILLS_OF_A_ROUND):
            for name, kind in OPERATIONS.items():
                for engine in ("LanceDB", "PostgreSQL") if name in ON_ENGINES else ("folder",):
                    place = f"{name}, {engine}"
                    _attack(place, kind, engine, models, min(upto, number), draws, verdict)
                    each = [counts["kills"] for counts in verdict.counts.values() if isinstance(counts, dict)]
                    verdict.counts["kills"] = sum(each)
                    shown = f"  {place}: {verdict.counts[place]}; {sum(each)} in all, {len(verdict.failures)} failures"
                    print(shown, file=sys.stderr, flush=True)
                    options.record(verdict)
    return verdict


def _attack(
    name: str,
    kind: type[Operation],
    engine: str,
    models: list[Path],
    number: int,
    draws: random.Random,
    verdict: Verdict,
) -> None:
    """Measure one whole run, then kill others at moments up to that long, and repeat each until it is done."""
    counts: dict[str, int] = verdict.counts.setdefault(name, {"kills": 0, "ended before": 0, "places": 0})
    _, whole_s = _run(place_for(kind, engine, models), None, verdict, name)
    while counts["kills"] < number and counts["ended before"] < MAX_ENDED * number:
        operation = place_for(kind, engine, models)
        counts["places"] += 1
        for run in range(min(KILLS_OF_A_PLACE, number - counts["kills"])):
            was_killed, seconds = _run(operation, draws.uniform(0, whole_s), verdict, name)
            counts["kills" if was_killed else "ended before"] += 1
            if not run:  # the machine may have become faster, or slower
                whole_s = 1.1 * whole_s if was_killed else seconds
            expect_right(operation, False, verdict, name)
        _run(operation, None, verdict, name)
        expect_right(operation, True, verdict, name)
    verdict.expect(counts["kills"] >= number, f"{name}: only {counts['kills']} runs were killed, not {number}")


def place_for(kind: type[Operation], engine: str, models: list[Path]) -> Operation:
    """Prepare an operation in a folder of its own."""
    folder = Path(tempfile.mkdtemp(dir=models[0].parent))
    address = postgres_place() if engine == "PostgreSQL" else str(folder / "index")
    operation = kind(folder, address, *models)
    operation.prepare()
    return operation


def _run(operation: Operation, kill_after_s: float | None, verdict: Verdict, name: str) -> tuple[bool, float]:
    """Let it work in a process; return whether that was killed, and how long it took."""
    receive, send = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_work, args=(operation, send))
    process.start()
    send.close()
    receive.recv()  # it has begun
    start = time.monotonic()
    process.join(MAX_WHOLE_S if kill_after_s is None else kill_after_s)
    process.kill()
    process.join()
    was_killed = process.exitcode == -signal.SIGKILL
    verdict.expect(not (was_killed and kill_after_s is None), f"{name}: a run took over {MAX_WHOLE_S:g} s")
    verdict.expect(was_killed or process.exitcode == 0, f"{name}: a run ended with {process.exitcode}")
    return was_killed, time.monotonic() - start


def _work(operation: Operation, send: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    send.send(None)
    operation.work()


def expect_right(operation: Operation, is_whole: bool, verdict: Verdict, name: str) -> None:
    """Note what is wrong at a place."""
    try:
        wrong = operation.check(is_whole)
    except Exception as error:  # what is left can't even be read
        traceback.print_exc()
        wrong = [f"{type(error).__name__}: {error}"]
    for each in wrong:
        verdict.expect(False, f"{name}, {'after the last run' if is_whole else 'after a kill'}: {each}")
