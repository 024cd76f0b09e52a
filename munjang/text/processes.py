"""Tokenizing in processes of our own: beside a GPU, threads of one interpreter would wait for each other.

Each is `python -m munjang.text.processes` with a tokenizer of its own; texts go in and ids come out over its pipes.
Should one fail, its texts are tokenized here.
"""

import os
import pickle
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import BinaryIO

from tokenizers import Tokenizer

from munjang.text.child_process import FAILURES, ChildProcess, end_all, write
from munjang.text.lookup.lookup import body_tokenizer
from munjang.types import Ids, Ints


class TokenizerProcesses:
    """Processes that tokenize; any number of threads may ask, each for one that is free."""

    def __init__(self, tokenizer: Tokenizer, number: int) -> None:
        state = tokenizer.to_str()
        self.free: queue.SimpleQueue[ChildProcess | None] = queue.SimpleQueue()
        # one thread each, as there are several of them
        self.all = [ChildProcess("munjang.text.processes", state, RAYON_NUM_THREADS="1") for _ in range(number)]
        for process in self.all:
            self.free.put(process)
        self.pid, self.num_failed, self._lock = os.getpid(), 0, threading.Lock()
        self.end = weakref.finalize(self, end_all, self.all, self.pid)

    def is_usable(self) -> bool:
        """Tell whether to ask: not in a forked child, whose pipes are the parent's, and not once all have failed."""
        return self.pid == os.getpid() and self.num_failed < len(self.all) and self.end.alive

    def __call__(
        self, texts: Sequence[str], otherwise: Callable[[Sequence[str]], tuple[Ids, Ints]]
    ) -> tuple[Ids, Ints]:
        """Return flat ids of texts and how many each has, from a free process, or from `otherwise` if it fails."""
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


def serve(receive: BinaryIO, send: BinaryIO) -> None:
    """Answer until the input ends."""
    tokenize = body_tokenizer(Tokenizer.from_str(pickle.load(receive)))
    while True:
        try:
            texts = pickle.load(receive)
        except EOFError:
            return
        write(send, tokenize(texts))


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (KeyboardInterrupt, BrokenPipeError):  # Ctrl-C reaches the whole group; the parent tells the user
        os._exit(1)
