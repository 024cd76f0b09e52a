"""Threads of torch: their number for the current thread, and work that is safe in a forked child."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

T = TypeVar("T")
_setting: dict[int, threading.Lock] = {}
_here = threading.local()


def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in a new thread and return its result.

    For work on tensors outside an executor, such as loading: in a forked child torch would wait in the caller's thread
    for workers that the fork left behind.
    """
    with ThreadPoolExecutor(1, "munjang") as pool:
        return pool.submit(function).result()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep work inside the block on one core, as the other cores have batches of their own."""
    _here.is_on_one_core = True
    try:
        yield
    finally:
        _here.is_on_one_core = False


def is_on_one_core() -> bool:
    """Return whether this thread is inside `on_one_core`."""
    return getattr(_here, "is_on_one_core", False)


def lock_of(locks: dict[int, threading.Lock]) -> threading.Lock:
    """Return the lock of this process: in a forked child, a thread that is not there may hold the parent's."""
    return locks.setdefault(os.getpid(), threading.Lock())


def set_threads(number: int | None) -> None:
    """Set the number of cores that torch uses from this thread, and from no other thread."""
    if number is None:
        return
    with lock_of(_setting):
        others = torch.get_num_threads()
        torch.set_num_threads(number)
        # torch keeps the last number set as what new threads start with: give them back theirs
        restore = threading.Thread(target=torch.set_num_threads, args=(others,))
        restore.start()
        restore.join()
