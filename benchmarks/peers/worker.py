"""One encoder in a process of its own, told what to do by lines of JSON.    Run by process.py, in the peer's venv.

    {"do": "load", "loader": ..., "model": ..., "made": ..., "threads": 2, "options": {...}}
    {"do": "texts", "path": "texts.json", "sample": 100}     read them, warm up, keep the fastest setting for them
    {"do": "encode", "vectors": "out.npy" or null}           all of them, once: its seconds
    {"do": "latency", "text": "...", "rounds": 20}           one at a time: the seconds of each, the processor's of all

Every answer is one line: what was asked for, or {"error": ...}.
"""

import ctypes
import json
import os
import signal
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.loaders import LOADERS, Loaded, Setting


class Worker:
    """The loaded model, the texts at hand and the setting that suits them."""

    loaded: Loaded
    texts: list[str]
    setting: Setting

    def load(self, loader: str, model: str, made: str, threads: int, options: dict[str, str]) -> dict[str, Any]:
        """Make the encoder ready."""
        start = time.perf_counter()
        Path(made).mkdir(parents=True, exist_ok=True)
        self.loaded = LOADERS[loader](Path(model), Path(made), threads, **options)
        seconds = time.perf_counter() - start
        self.setting = self.loaded.settings[0]
        self.loaded.encode(["warm"], self.setting)
        return {"seconds": seconds, "versions": {name: version(name) for name in self.loaded.packages}}

    def read(self, path: str, sample: int) -> dict[str, Any]:
        """Texts from now on, and the setting that is fastest on some of them."""
        self.texts = json.loads(Path(path).read_text(encoding="utf-8"))
        some = self.texts[:: max(len(self.texts) // sample, 1)][:sample]
        self.loaded.encode(some, self.loaded.settings[0])
        if len(self.loaded.settings) > 1:
            self.setting = min(self.loaded.settings, key=lambda setting: self.best(some, setting))
            self.loaded.encode(some, self.setting)
        return {"setting": self.setting}

    def best(self, texts: list[str], setting: Setting) -> float:
        """The better of two calls, after one to get used to the setting."""
        self.loaded.encode(texts[:1], setting)
        return min(self.time(texts, setting) for _ in range(2))

    def encode(self, vectors: str | None) -> dict[str, Any]:
        """One turn."""
        start = time.perf_counter()
        found = self.loaded.encode(self.texts, self.setting)
        seconds = time.perf_counter() - start
        if vectors is not None:
            np.save(vectors, np.asarray(found, np.float32))
        return {"seconds": seconds}

    def latency(self, text: str, rounds: int) -> dict[str, Any]:
        """One text, again and again, at the encoder's first setting."""
        setting = self.loaded.settings[0]
        for _ in range(3):
            self.loaded.encode([text], setting)
        start = time.process_time()
        seconds = [self.time([text], setting) for _ in range(rounds)]
        return {"seconds": seconds, "processor_s": time.process_time() - start}

    def time(self, texts: list[str], setting: Setting) -> float:
        """Seconds of one call."""
        start = time.perf_counter()
        self.loaded.encode(texts, setting)
        return time.perf_counter() - start


def die_with_parent() -> None:
    """Even if it is killed: a stopped process would stay for ever."""
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def main() -> None:
    """Answer until the other side hangs up."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    warnings.simplefilter("ignore")
    worker = Worker()
    actions = {"load": worker.load, "texts": worker.read, "encode": worker.encode, "latency": worker.latency}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = actions[request.pop("do")](**request)
        except Exception as error:  # a peer that can't run here is a result, not a crash
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
