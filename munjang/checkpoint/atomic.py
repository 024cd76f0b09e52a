"""Write folders atomically: the new one appears whole or not at all, and the old one stays until then.

A folder is written next to its target under a hidden name, then the two are exchanged in one step. A process that is
killed leaves the old folder as it was, and perhaps the hidden one, which the next save or load of the target removes:
a writer holds a lock on its hidden folder, and the kernel gives that back when the process dies.
"""

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from munjang.checkpoint.files import ONNX_FILES, RANGES_FILE, TEXT_FILES, WEIGHT_FILES, load_json
from munjang.errors import CheckpointError, MunjangError

# Files that belong to a model, beside the folders that modules.json names: they go when another model is saved there
MODEL_FILES = (*TEXT_FILES, *(name for names in WEIGHT_FILES for name in names), RANGES_FILE, "generation_config.json")
MODEL_MARKERS = ("config.json", "modules.json", "tokenizer.json")  # a folder with one of these holds a model
EXCHANGE_CALLS = {"linux": ("renameat2", 2), "darwin": ("renameatx_np", 2)}  # function of the C library, and its flag
SAVING, ASIDE = ".saving-", ".old"  # in the names of hidden folders: being written; set aside while two are exchanged
AT_FDCWD = {"linux": -100, "darwin": -2}  # "relative to the current folder"


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder and put it at `target`. Files there that belong to no model are kept."""
    try:
        target = target.resolve()
        check_free(target)
        with replacing_folder(target, _keep_foreign) as fresh:
            write(fresh)
    except MunjangError:
        raise
    except Exception as error:  # a full disk is an OSError here, a SafetensorError or a bare Exception there
        reason = error.strerror if isinstance(error, OSError) else None
        raise CheckpointError(f"{target} can't be written: {reason or error}. Nothing was changed there.") from error


def check_free(target: Path) -> None:
    """Refuse a folder that holds something other than a model."""
    if target.exists() and not target.is_dir():
        raise CheckpointError(f"{target} is a file; give a folder to save to.")
    if target.is_dir() and any(target.iterdir()) and not any((target / name).exists() for name in MODEL_MARKERS):
        raise CheckpointError(f"{target} holds other files and no model; save to a new folder.")


@contextmanager
def replacing_folder(target: Path, keep: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """Yield a folder to fill, which replaces `target` at the end or disappears if anything fails.

    `keep(old, new)` is called at the end where there is an old folder, to bring along what stays of it.
    """
    target = target.resolve()  # a link stays a link: the folder behind it changes
    remove_leftovers(target)
    fresh, lock = _locked_folder(target)
    try:
        allowed = fresh.stat().st_mode & 0o666  # what the user's umask leaves
        yield fresh
        for path in fresh.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(path.stat().st_mode | allowed)  # safetensors writes for the owner alone
        if target.exists():
            if keep is not None:  # after the loop above: a file that is linked here is still the user's own
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
        os.close(lock)


def _locked_folder(target: Path) -> tuple[Path, int]:
    """Make a hidden folder beside the target; return it with its lock, which says that somebody is writing there."""
    while True:
        fresh = target.parent / f".{target.name}{SAVING}{secrets.token_hex(4)}"
        fresh.mkdir(parents=True)
        lock = os.open(fresh if os.name != "nt" else os.devnull, os.O_RDONLY)
        if _take(lock) is not False and fresh.is_dir():  # else somebody took it for a leftover in between
            return fresh, lock
        os.close(lock)


def _take(lock: int) -> bool | None:
    """Lock an open folder and tell whether nobody else had; None where the system has no such locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a network disk, perhaps
        return None
    return True


def remove_leftovers(target: Path) -> None:
    """Remove the hidden folders that killed processes left beside a target."""
    target = target.resolve()
    with suppress(OSError), os.scandir(target.parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(f".{target.name}{SAVING}")]
        for name in names:
            # without a target, one set aside is the only copy of what was there
            if target.exists() or not name.endswith(ASIDE):
                _remove_unlocked(target.parent / name)


def _remove_unlocked(folder: Path) -> None:
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY)
        try:
            if _take(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _sync(path: Path) -> None:
    if path.is_symlink() or (os.name == "nt" and path.is_dir()):  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(fresh: Path, target: Path) -> None:
    """Exchange the folders in one step where the system can, else in two, undone on failure."""
    name, flag = EXCHANGE_CALLS.get(sys.platform, ("", 0))
    call = getattr(ctypes.CDLL(None), name, None) if name else None
    here = AT_FDCWD.get(sys.platform, 0)
    if call is not None and call(here, os.fsencode(fresh), here, os.fsencode(target), flag) == 0:
        return
    aside = fresh.with_name(f"{fresh.name}{ASIDE}")
    target.rename(aside)
    try:
        fresh.rename(target)
    except BaseException as error:
        try:
            aside.rename(target)
        except OSError:
            raise CheckpointError(f"{target} can't be written: {error}. What was there is now {aside}.") from error
        raise
    shutil.rmtree(aside, ignore_errors=True)  # the new folder is there: a rest of the old one is not a failure


def _keep_foreign(old: Path, fresh: Path) -> None:
    """Bring along the files that the old model does not own, by links where the disk has them."""
    owned = {path.name for pattern in MODEL_FILES for path in old.glob(pattern)} | _module_folders(old)
    if (old / ONNX_FILES[0]).is_file():  # else a graph there is somebody else's
        owned |= set(ONNX_FILES)
    for path in old.iterdir():
        if path.name in owned or (fresh / path.name).exists():
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, fresh / path.name, symlinks=True, copy_function=_link)
        else:
            _link(path, fresh / path.name)


def _module_folders(folder: Path) -> set[str]:
    try:
        entries = load_json(folder / "modules.json")
        return {str(entry["path"]).partition("/")[0] for entry in entries}
    except (CheckpointError, KeyError, TypeError):  # none, or damaged: its folders are kept
        return set()


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
