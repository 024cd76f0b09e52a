"""One model on several devices: a process of its own for each device beyond the first.

Each process is `python -m munjang.engine.replicas`. It is told once how to build an engine on its device, and then
computes one part of a list at a time; devices that are idle take the next part. Nothing of the caller's program is
imported there. A process ends with the model, or at once when the one that started it ends; should one die, the other
devices compute its part. Ctrl-C reaches only the process that started them, which tells them to drop their parts; they
are there for the next call.

Tested with several processes on a CPU; not measured on several GPUs yet.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, BinaryIO, Protocol

import numpy as np
import torch

from munjang.engine.ahead import Stopped, until
from munjang.errors import MunjangError
from munjang.progress import Progress
from munjang.text.child_process import FAILURES, ChildProcess, end_all, write
from munjang.text.tokenizer import Tokenizer
from munjang.types import Bools

MAX_PART_WINDOWS = 8  # enough for tokenizing and computing to overlap within a part
TARGET_PART_S = 0.5  # after a part that took less comes a larger one, after twice as long a smaller


class Call(Protocol):
    """The work of one call, which is sent to the processes."""

    @property
    def window(self) -> int:
        """The number of items tokenized together."""

    @property
    def is_shared(self) -> bool:
        """True if another process may compute some of the rows."""


class Computer(Protocol):
    """An engine, as the processes use it: it computes a part of the items."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, which knows the model's max_length."""

    def part(self, items: Any, call: Any) -> tuple[Any, Bools]:
        """Return a row for each item, and which items were too long."""


class Gone(Exception):
    """The process of a device no longer answers."""


@dataclass
class Replica:
    """A device and the process that computes on it; the first device belongs to this process and has none."""

    device: str
    process: ChildProcess | None = None
    windows: int = 1  # of its next part
    is_alive: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)  # several threads of the caller may encode at once
    num_asked: int = 0

    def answer(self, question: tuple[Any, ...] | None = None, stop: "Stop | None" = None) -> Any:
        """Send a request, or await the start, and return the reply; re-raise the worker's error."""
        assert self.process is not None
        with self.lock:
            self.num_asked += question is not None
            if stop is not None:
                stop.number = self.num_asked  # before the look: who stops in between finds the number
                if stop.is_set:
                    raise Stopped
            try:
                is_error, value = (
                    pickle.load(self.process.receive) if question is None else self.process((self.num_asked, *question))
                )
            except FAILURES as error:
                with suppress(subprocess.TimeoutExpired):  # its pipes are closed a moment before it is gone
                    self.process.child.wait(1)
                raise Gone(f"exit code {self.process.child.poll()}") from error
        if is_error:
            raise value
        return value


@dataclass
class Stop:
    """A switch that drops a part: call it when the result is no longer needed."""

    replica: Replica
    number: int | None = None  # of the question, once the process has been asked
    is_set: bool = False

    def __call__(self) -> None:
        self.is_set = True
        if self.number is not None and self.replica.process is not None:
            with suppress(*FAILURES):  # it is gone already
                write(self.replica.process.send, self.number)


class Replicas:
    """Copies of a model in more processes; the end of a `with` block waits for them, or ends them on failure."""

    def __init__(
        self, build: Callable[..., Computer], devices: Sequence[torch.device], options: tuple[Any, ...]
    ) -> None:
        """Start a process for each device but the first; `build(device, *options)` makes its engine there."""
        self.here, *self.others = [Replica(str(device)) for device in devices]
        for replica in self.others:
            replica.process = ChildProcess("munjang.engine.replicas", (build, (replica.device, *options)))
        processes = [replica.process for replica in self.others if replica.process is not None]
        self.pid = os.getpid()
        self.end = weakref.finalize(self, end_all, processes, self.pid)

    def __enter__(self) -> "Replicas":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for replica in self.others if error is None else ():
                try:
                    replica.answer()
                except Gone as gone:
                    raise MunjangError(f"The process for {replica.device} ended while loading ({gone}).") from gone
        except BaseException:
            self.end()
            raise
        if error is not None:
            self.end()

    def are_worth(self, num_items: int, call: Call) -> bool:
        """Return whether there is enough work to share, and another process; always False in a forked child."""
        is_usable = self.pid == os.getpid() and self.end.alive and any(other.is_alive for other in self.others)
        return is_usable and call.is_shared and num_items >= 2 * call.window

    def __str__(self) -> str:
        return ", ".join(replica.device for replica in (self.here, *self.others))

    def compute(self, engine: Computer, items: list[Any], call: Call, bar: Progress) -> tuple[Any, Bools]:
        """Return a row for each item, in their order, and which items were too long.

        Parts begin at multiples of the window, so that batches, and what an error counts, are as on one device.
        """
        out: Any = None
        is_cut = np.zeros(len(items), bool)
        with closing(self._answers(engine, items, call)) as answers:
            for start, end, (rows, cut_rows) in answers:
                out = np.empty((len(items), *rows.shape[1:]), rows.dtype) if out is None else out
                out[start:end], is_cut[start:end] = rows, cut_rows
                bar.advance(end - start)
        return out, is_cut

    def _answers(self, engine: Computer, items: list[Any], call: Call) -> Generator[tuple[int, int, Any], None, None]:
        limit, window = engine.tokenizer.max_length, call.window
        idle = deque([self.here, *(other for other in self.others if other.is_alive)])
        running: dict[Future[Any], tuple[int, int, Stop]] = {}
        errors: dict[int, Exception] = {}
        again: list[tuple[int, int]] = []
        begun = 0
        with ThreadPoolExecutor(len(idle), "munjang-replica") as pool:
            try:
                while running or ((begun < len(items) or again) and not errors):
                    while idle and (begun < len(items) or again) and not errors:
                        stop = Stop(idle.popleft())
                        if again:
                            start, end = again.pop()
                        else:
                            fair = max(1, (len(items) - begun) // (2 * window * (1 + len(self.others))))
                            start, end = begun, min(begun + min(stop.replica.windows, fair) * window, len(items))
                            begun = end
                        task = partial(_compute, stop, engine, items[start:end], call, limit)
                        running[pool.submit(task)] = (start, end, stop)
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        start, end, stop = running.pop(future)
                        try:
                            rows = future.result()
                        except Gone as gone:
                            again.append((start, end))
                            _forget(stop.replica, gone)
                        except Stopped:
                            continue
                        except Exception as error:
                            errors[start] = error
                            _drop(running, start)
                        else:
                            idle.append(stop.replica)
                            yield start, end, rows
            finally:  # Ctrl-C, or an error of the caller's
                _drop(running)
        if errors:  # the one that a single device would have met first: parts are begun in order
            raise errors[min(errors)]


def _drop(running: dict[Future[Any], tuple[int, int, Stop]], behind: int = -1) -> None:
    """Stop the running parts that begin after `behind`."""
    for start, _, stop in running.values():
        if start > behind:
            stop()


def _compute(stop: Stop, engine: Computer, items: list[Any], call: Call, limit: int | None) -> Any:
    replica, started = stop.replica, time.monotonic()
    if replica.process is None:
        with until(lambda: stop.is_set):
            rows = engine.part(items, call)
    else:
        rows = replica.answer((limit, items, call), stop)
    took_s = time.monotonic() - started
    if took_s < TARGET_PART_S and len(items) == replica.windows * call.window:
        replica.windows = min(2 * replica.windows, MAX_PART_WINDOWS)
    elif took_s > 2 * TARGET_PART_S:
        replica.windows = max(replica.windows // 2, 1)
    return rows


def _forget(replica: Replica, gone: Gone) -> None:
    if replica.is_alive:  # another thread may have noticed at the same time
        replica.is_alive = False
        warnings.warn(
            f"The process for {replica.device} ended ({gone}); the other devices go on without it.",
            RuntimeWarning,
            stacklevel=7,
        )


def serve(receive: BinaryIO, send: BinaryIO) -> None:
    """Build the engine, then compute parts for as long as the input lasts."""
    build, options = pickle.load(receive)
    questions: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
    dropped: set[int] = set()
    threading.Thread(target=_listen, args=(receive, questions, dropped), daemon=True).start()
    engine = _answer(send, partial(build, *options), lambda built: None)
    while engine is not None:
        number, engine.tokenizer.max_length, *question = questions.get()
        with until(partial(dropped.__contains__, number)):
            _answer(send, partial(engine.part, *question), lambda result: result)


def _listen(receive: BinaryIO, questions: "queue.SimpleQueue[tuple[Any, ...]]", dropped: set[int]) -> None:
    """Read ahead while a part is computed, to notice at once dropped parts and the end of the parent."""
    while True:
        try:
            heard = pickle.load(receive)
        except (EOFError, OSError):
            os._exit(0)
        if isinstance(heard, int):
            dropped.add(heard)
        else:
            questions.put(heard)


def _answer(send: BinaryIO, function: Callable[[], Any], say: Callable[[Any], Any]) -> Any:
    """Call the function and send its result or its error to the parent; return None if it failed."""
    try:
        result = function()
    except Exception as error:
        write(send, (True, _sendable(error)))
        return None
    write(send, (False, say(result)))
    return result


def _sendable(error: Exception) -> Exception:
    """Return the error if it can be pickled, else a MunjangError with its message."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return MunjangError(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of libraries must not mix with answers
    warnings.simplefilter("ignore")  # the parent loads the same and computes the same: it has said so
    try:
        serve(sys.stdin.buffer, output)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)
    os._exit(0)  # at once: a thread still waits for input
