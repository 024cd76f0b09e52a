"""An encoder's process, seen from the one that measures. It is stopped while it isn't its turn.

Thread pools spin for a while after their work (onnxruntime, Intel's OpenMP 200 ms): without a stop they would be
measured in the next one's turn.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.table import ROOT, Peer, python_of


class PeerFailed(Exception):
    """The encoder can't do what it was asked for; says why."""


class Process:
    """One encoder. `ask` wakes it, gives it a request, waits for the answer and stops it again."""

    def __init__(self, peer: Peer, threads: int, log: Path) -> None:
        self.peer = peer
        python = python_of(peer, sys.executable)
        if not python.exists():
            raise PeerFailed(f"no {python.relative_to(ROOT)}: make bench-peers")
        settings = {
            "PYTHONPATH": str(ROOT),
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "DO_NOT_TRACK": "1",  # infinity's server reports to its makers otherwise
            "TOKENIZERS_PARALLELISM": "true",
            "OMP_NUM_THREADS": str(threads),
            "RAYON_NUM_THREADS": str(threads),
        }
        self.log = log
        self.process = subprocess.Popen(
            [str(python), "-m", "benchmarks.peers.worker"],
            cwd=ROOT,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            encoding="utf-8",
        )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """The answer to one request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGCONT)
        try:
            print(json.dumps({"do": do, **request}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            tail = self.log.read_text(errors="replace").strip().splitlines()[-3:]
            raise PeerFailed(f"its process ended with {self.process.wait()}: {' | '.join(tail)}")
        self.process.send_signal(signal.SIGSTOP)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(answer["error"])
        return answer

    def close(self) -> None:
        """End it."""
        self.process.kill()  # a stopped process would not see that its input has ended
        self.process.wait()
