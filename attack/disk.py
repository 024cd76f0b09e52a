"""A full disk: files end at a random size; the run says so, what is there is whole, and the next one finishes.

Linux' limit on the size of a file stands for the disk: it needs no rights, and errors come at the same places.
"""

import argparse
import random
import resource
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from attack.child import PROCESSES, outcome_of
from attack.kills import expect_right, place_for
from attack.operations import OPERATIONS, Operation
from attack.verdict import Verdict
from munjang.errors import MunjangError
from tests.models import make_model

KINDS = ("ingest", "upsert", "delete", "compact", "export", "import", "save", "encode", "train")
NUM_FAULTS = 8  # of each, at scale 1
MIN_BYTES, MAX_BYTES = 500, 300_000
LAST_BYTES = 40
MAX_S = 120.0


def run(options: argparse.Namespace) -> Verdict:
    """Let every operation run into a full disk, then finish."""
    verdict, draws = Verdict("disk"), random.Random(options.seed)
    PROCESSES.set_forkserver_preload(["attack.operations", "munjang.stores.lance.store"])
    with tempfile.TemporaryDirectory() as folder:
        models = [make_model("bert", Path(folder) / name, pooling=name) for name in ("mean", "cls")]
        for name in KINDS:
            counts = {"faults": 0, "no fault": 0}
            sizes: list[int] = []
            for number in range(max(2, round(NUM_FAULTS * options.scale))):
                operation = place_for(OPERATIONS[name], "LanceDB", models)
                size = int(MIN_BYTES * (MAX_BYTES / MIN_BYTES) ** draws.random())
                if number % 2:  # full at the last bytes of a file, which may be lost without an error
                    size = draws.choice(sizes) - draws.randint(1, LAST_BYTES)
                outcome = outcome_of(_work, (operation, size), MAX_S)
                counts["no fault" if outcome == "done" else "faults"] += 1
                verdict.expect(outcome in ("done", "refused"), f"{name}, files of {size} bytes: {outcome}")
                expect_right(operation, False, verdict, name)
                outcome = outcome_of(_work, (operation, None), MAX_S)
                verdict.expect(outcome == "done", f"{name}, with room again: {outcome}")
                expect_right(operation, True, verdict, name)
                files = [path for path in operation.folder.rglob("*") if path.is_file()]
                sizes = sorted({path.stat().st_size for path in files if path.stat().st_size > MIN_BYTES})
            verdict.counts[name] = counts
    return verdict


def _work(operation: Operation, max_bytes: int | None, send: Connection) -> None:
    if max_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
    try:
        operation.work()
        outcome = "done"
    except (MunjangError, OSError, ValueError, RuntimeError):  # Arrow's and LanceDB's are among these
        outcome = "refused"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"[:300]
    send.send(outcome)
