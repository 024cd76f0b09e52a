"""Extractor: the texts of office files, from a child process that a broken file may take down but nothing more."""

import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass
from types import TracebackType

from munjang.data.office.part import Part, Unreadable

MAX_ANSWER_BYTES = 256 << 20
READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Limits:
    """The bounds of reading one file."""

    max_seconds: float = 60.0
    max_memory_mb: int = 2048


class Extractor:
    """Reads office files in a child process, started for the first one and again after one that had to be killed."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._child: subprocess.Popen[bytes] | None = None

    def read(self, path: str) -> list[Part]:
        """Return the parts of a file; raise Unreadable with the reason where there are none."""
        child = self._started()
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(os.path.abspath(path)).encode() + b"\n")
            child.stdin.flush()
            line = self._line(child)
        except BrokenPipeError:
            line = b""
        if not line:
            child.wait()
            reason = f"reading it ended the process ({_ending(child.returncode)})"
            self.close()
            raise Unreadable(reason)
        answer = json.loads(line)
        if "error" in answer:
            raise Unreadable(answer["error"])
        parts = [Part(_storable(text), page, heading and _storable(heading)) for text, page, heading in answer["parts"]]
        parts = [part for part in parts if part.text.strip()]
        if not parts:
            raise Unreadable("it holds no text")
        return parts

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._child is None or self._child.poll() is not None:
            path = os.pathsep.join(filter(None, sys.path))  # what is importable here is importable there
            self._child = subprocess.Popen(
                [sys.executable, "-m", "munjang.data.office.child", str(self.limits.max_memory_mb)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # one thread each: pools of threads reserve address space, which is limited
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,  # Ctrl-C is for the parent, which ends its child
            )
        return self._child

    def _line(self, child: "subprocess.Popen[bytes]") -> bytes:
        """Return the child's answer; empty if it died. Kill it if it takes too long or says too much."""
        assert child.stdout is not None
        deadline_s = time.monotonic() + self.limits.max_seconds
        line = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline_s - time.monotonic())):
                    self.close()
                    raise Unreadable(f"reading it took more than {self.limits.max_seconds:g} s")
                block = os.read(child.stdout.fileno(), READ_BYTES)
                if not block:
                    return b""
                line += block
                if len(line) > MAX_ANSWER_BYTES:
                    self.close()
                    raise Unreadable(f"it holds more than {MAX_ANSWER_BYTES >> 20} MiB of text")
        return bytes(line)

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def __enter__(self) -> "Extractor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _storable(text: str) -> str:
    """Leave out what databases and UTF-8 have no place for: null characters and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
