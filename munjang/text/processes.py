"""Tokenizing in processes of our own: beside a GPU, threads of one interpreter would wait for each other.

Each process is `python -m munjang.text.processes` with a tokenizer of its own; texts go in and ids come out over its
pipes. Nothing of the caller's program is imported there, so no `if __name__ == "__main__"` is needed. A process ends
when its input ends, so none outlives the one that started it. Should one fail, its texts are tokenized here.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from tokenizers import Tokenizer

from munjang.text.bodies import Bodies
from munjang.types import Ids, Ints


class Process:
    """One process and its pipes."""

    def __init__(self, tokenizer: str) -> None:
        # what is importable here is importable there; one thread each, as there are several of them
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RAYON_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "munjang.text.processes"]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.send, self.receive = self.child.stdin, self.child.stdout
        _write(self.send, tokenizer)

    def __call__(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        _write(self.send, list(texts))
        flat, lengths = pickle.load(self.receive)
        return flat, lengths

    def end(self) -> None:
        for pipe in (self.send, self.receive):
            with suppress(OSError):  # it is gone already
                pipe.close()
        self.child.kill()
        self.child.wait()


class Processes:
    """Some processes; any number of threads may ask, each for one that is free."""

    def __init__(self, tokenizer: Tokenizer, number: int) -> None:
        state = tokenizer.to_str()
        self.free: queue.SimpleQueue[Process | None] = queue.SimpleQueue()
        self.all = [Process(state) for _ in range(number)]
        for process in self.all:
            self.free.put(process)
        self.pid, self.num_failed, self._lock = os.getpid(), 0, threading.Lock()
        self.end = weakref.finalize(self, _end, self.all, self.pid)

    def is_usable(self) -> bool:
        """Not in a forked child, whose pipes are the parent's, and not once all have failed."""
        return self.pid == os.getpid() and self.num_failed < len(self.all) and self.end.alive

    def __call__(self, texts: Sequence[str], otherwise: Bodies) -> tuple[Ids, Ints]:
        """Flat ids of texts and how many each has, from a free process, or from `otherwise` if it fails."""
        process = self.free.get()
        if process is None:  # all have failed
            self.free.put(None)
            return otherwise(texts)
        try:
            found = process(texts)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            with self._lock:
                self.num_failed += 1
                if self.num_failed == len(self.all):
                    self.free.put(None)
            return otherwise(texts)
        self.free.put(process)
        return found


def _end(processes: list[Process], pid: int) -> None:
    if pid == os.getpid():
        for process in processes:
            process.end()


def _write(pipe: BinaryIO | Any, value: object) -> None:
    pipe.write(pickle.dumps(value, protocol=5))
    pipe.flush()


def serve(receive: BinaryIO, send: BinaryIO) -> None:
    """Answer until the input ends."""
    bodies = Bodies(Tokenizer.from_str(pickle.load(receive)))
    while True:
        try:
            texts = pickle.load(receive)
        except EOFError:
            return
        _write(send, bodies(texts))


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (KeyboardInterrupt, BrokenPipeError):  # Ctrl-C reaches the whole group; the parent tells the user
        os._exit(1)
