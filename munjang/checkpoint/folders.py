"""Folders that appear whole or not at all, and never without the one that was there before.

One is written beside its place under a hidden name, then the two are exchanged in one step. A process that is killed
leaves the old folder as it was, and perhaps the hidden one.
"""

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from munjang.errors import CheckpointError

EXCHANGE = {"linux": ("renameat2", 2), "darwin": ("renameatx_np", 2)}  # the call of the C library, and its flag
HERE = {"linux": -100, "darwin": -2}  # AT_FDCWD


@contextmanager
def replacing_folder(target: Path, keep: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """A folder to fill that takes the place of `target` at the end, or disappears if anything fails.

    `keep` brings along what stays of an older one: called at the end with that one and the new one.
    """
    target = target.resolve()  # a link stays a link: the folder behind it changes
    fresh = target.parent / f".{target.name}.saving-{secrets.token_hex(4)}"
    try:
        fresh.mkdir(parents=True)
        allowed = fresh.stat().st_mode & 0o666  # what the user's umask leaves
        yield fresh
        for path in fresh.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(path.stat().st_mode | allowed)  # safetensors writes for the owner alone
        if target.exists():
            if keep is not None:  # behind the loop above: a file that is linked here is still the user's own
                keep(target, fresh)
            fresh.chmod(target.stat().st_mode)
        for path in [*fresh.rglob("*"), fresh]:
            _sync(path)
        if target.exists():
            _exchange(fresh, target)
        else:
            fresh.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _sync(path: Path) -> None:
    if path.is_symlink() or (os.name == "nt" and path.is_dir()):  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(fresh: Path, target: Path) -> None:
    """The new one in the place of the old: in one step where the system can, else in two, undone on failure."""
    name, flag = EXCHANGE.get(sys.platform, ("", 0))
    call = getattr(ctypes.CDLL(None), name, None) if name else None
    here = HERE.get(sys.platform, 0)
    if call is not None and call(here, os.fsencode(fresh), here, os.fsencode(target), flag) == 0:
        return
    aside = fresh.with_name(f"{fresh.name}.old")
    target.rename(aside)
    try:
        fresh.rename(target)
    except BaseException as error:
        try:
            aside.rename(target)
        except OSError:
            raise CheckpointError(f"{target} can't be written: {error}. What was there is now {aside}.") from error
        raise
    shutil.rmtree(aside, ignore_errors=True)  # the new one is there: what is left of the old is no failure
