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

FAILURES = (OSError, EOFError, pickle.UnpicklingError, ValueError)  # what asking a process that is gone raises


class Process:
    """A module of ours as a program: it is told once what to be, then each question gets one answer."""

    def __init__(self, module: str, first: object, **environment: str) -> None:
        # what is importable here is importable there
        path = os.pathsep.join(filter(None, sys.path))
        self.child = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, **environment},
            start_new_session=True,  # Ctrl-C is for the parent alone, which may go on and ask again
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.send, self.receive = self.child.stdin, self.child.stdout
        write(self.send, first)

    def __call__(self, question: object) -> Any:
        write(self.send, question)
        return pickle.load(self.receive)

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
        # one thread each, as there are several of them
        self.all = [Process("munjang.text.processes", state, RAYON_NUM_THREADS="1") for _ in range(number)]
        for process in self.all:
            self.free.put(process)
        self.pid, self.num_failed, self._lock = os.getpid(), 0, threading.Lock()
        self.end = weakref.finalize(self, end_all, self.all, self.pid)

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
            flat, lengths = process(list(texts))
        except FAILURES:
            with self._lock:
                self.num_failed += 1
                if self.num_failed == len(self.all):
                    self.free.put(None)
            return otherwise(texts)
        self.free.put(process)
        return flat, lengths


def end_all(processes: list[Process], pid: int) -> None:
    """End them, unless this is a forked child: they are its parent's."""
    if pid == os.getpid():
        for process in processes:
            process.end()


def write(pipe: BinaryIO | Any, value: object) -> None:
    """Send one value."""
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
        write(send, bodies(texts))


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (KeyboardInterrupt, BrokenPipeError):  # Ctrl-C reaches the whole group; the parent tells the user
        os._exit(1)
