"""Lock a folder for one process; the kernel releases the lock when the process dies.

The package filelock truncates the file that it finds locked, so the error could not name the process that holds it.
"""

import os
import sys
from pathlib import Path

from munjang.errors import InputError


def locked(folder: Path, output: Path) -> int:
    """Return the open lock file. The kernel releases it when the process dies, so a lock is never stale.

    A file that holds a process id and is taken to be stale when that process is gone would fail in containers,
    where the next run often has the same id, and when two runs find it stale at the same time.
    """
    while True:
        folder.mkdir(exist_ok=True)
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # another run ended in between and took the folder with it
        try:
            _take(lock)
        except (BlockingIOError, PermissionError):
            owner = f"process {os.read(lock, 20).decode()}".rstrip()  # the number is written a moment after the lock
            os.close(lock)
            raise InputError(f"{output} is being written by another {owner}; wait for it or stop it") from None
        if _is_same(lock, folder / "lock"):
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
            return lock
        os.close(lock)  # locked, but removed by the run that held it before


def _take(lock: int) -> None:
    if sys.platform == "win32":  # untested
        import msvcrt

        msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_same(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
