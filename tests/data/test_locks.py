"""A folder's lock: held by one process, let go of when that process ends, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from munjang.data.locks import locked
from munjang.errors import InputError

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from munjang.data.locks import locked
lock = locked(Path(sys.argv[1]), Path("out"))
print("held", flush=True)
sys.stdin.read()
"""


def hold(folder: Path) -> "subprocess.Popen[str]":
    """Another process that has the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_is_named_and_its_death_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "out.training"
    with hold(folder) as process:
        with pytest.raises(InputError, match=f"out is being written by another process {process.pid}; wait"):
            locked(folder, Path("out"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    lock = locked(folder, Path("out"))
    assert (folder / "lock").read_text() == str(os.getpid())
    os.close(lock)


def test_a_second_time_in_one_process(tmp_path: Path) -> None:
    lock = locked(tmp_path, Path("out"))
    with pytest.raises(InputError, match="another process"):
        locked(tmp_path, Path("out"))
    os.close(lock)
    os.close(locked(tmp_path, Path("out")))


def test_a_lock_of_a_removed_file_is_worth_nothing(tmp_path: Path) -> None:
    """A run that ends takes its lock file away; who waits for the name makes a new one."""
    first = locked(tmp_path, Path("out"))
    (tmp_path / "lock").unlink()
    second = locked(tmp_path, Path("out"))
    assert not os.path.samestat(os.fstat(first), os.fstat(second))
    os.close(first)
    os.close(second)
