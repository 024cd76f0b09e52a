"""A module of ours run as a program beside this one: it gets values over its pipes and answers each.

Nothing of the caller's program is imported there, so no `if __name__ == "__main__"` is needed. A child ends when its
input ends, so none outlives the process that started it.
"""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any, BinaryIO

FAILURES = (OSError, EOFError, pickle.UnpicklingError, ValueError)  # what asking a child that is gone raises


class ChildProcess:
    """Runs a module, tells it once what to be, then gets one answer to each question."""

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
        """Close its pipes and kill it."""
        for pipe in (self.send, self.receive):
            with suppress(OSError):  # it is gone already
                pipe.close()
        self.child.kill()
        self.child.wait()


def end_all(children: list[ChildProcess], pid: int) -> None:
    """End children of the process `pid`; a forked child of it leaves them alone."""
    if pid == os.getpid():
        for child in children:
            child.end()


def write(pipe: BinaryIO | Any, value: object) -> None:
    """Send one value."""
    pipe.write(pickle.dumps(value, protocol=5))
    pipe.flush()
