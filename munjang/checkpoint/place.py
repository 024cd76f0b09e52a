"""Putting a folder in its place: whole or not at all, and never without the one that was there before.

It is written beside its place under a hidden name, then the two are exchanged in one step. A process that is killed
leaves the old model as it was, and perhaps the hidden folder.
"""

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from munjang.checkpoint.files import ONNX_FILES, RANGES, TEXT_FILES, WEIGHT_FILES, load_json
from munjang.errors import CheckpointError, MunjangError

# What goes when another model takes the place; with it the folders that modules.json names
OWNED = (*TEXT_FILES, *(name for names in WEIGHT_FILES for name in names), RANGES, "generation_config.json")
MARKS = ("config.json", "modules.json", "tokenizer.json")  # a folder with one of these holds a model
EXCHANGE = {"linux": ("renameat2", 2), "darwin": ("renameatx_np", 2)}  # the call of the C library, and its flag
HERE = {"linux": -100, "darwin": -2}  # AT_FDCWD


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder and put it at `target`. Files there that belong to no model are kept."""
    fresh = None
    try:
        target = target.resolve()  # a link stays a link: the folder behind it changes
        check_free(target)
        fresh = target.parent / f".{target.name}.saving-{secrets.token_hex(4)}"
        fresh.mkdir(parents=True)
        write(fresh)
        if target.exists():
            _keep_foreign(target, fresh)
            fresh.chmod(target.stat().st_mode)
        for path in [*fresh.rglob("*"), fresh]:
            _sync(path)
        if target.exists():
            _exchange(fresh, target)
        else:
            fresh.rename(target)
        _sync(target.parent)
    except MunjangError:
        raise
    except Exception as error:  # a full disk is an OSError here, a SafetensorError or a bare Exception there
        reason = error.strerror if isinstance(error, OSError) else None
        raise CheckpointError(f"{target} can't be written: {reason or error}. Nothing was changed there.") from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def check_free(target: Path) -> None:
    """Refuse a place that holds something else than a model."""
    if target.exists() and not target.is_dir():
        raise CheckpointError(f"{target} is a file; give a folder to save to.")
    if target.is_dir() and any(target.iterdir()) and not any((target / name).exists() for name in MARKS):
        raise CheckpointError(f"{target} holds other files and no model; save to a new folder.")


def _keep_foreign(old: Path, fresh: Path) -> None:
    """Bring along, by links where the disk has them, what the model that goes does not own."""
    owned = {path.name for pattern in OWNED for path in old.glob(pattern)} | _module_folders(old)
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


def _sync(path: Path) -> None:
    if path.is_symlink() or (os.name == "nt" and path.is_dir()):  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(fresh: Path, target: Path) -> None:
    """Each in the place of the other: in one step where the system can, else in two that are undone on failure."""
    name, flag = EXCHANGE.get(sys.platform, ("", 0))
    call = getattr(ctypes.CDLL(None), name, None) if name else None
    here = HERE.get(sys.platform, 0)
    if call is not None and call(here, os.fsencode(fresh), here, os.fsencode(target), flag) == 0:
        return
    aside = fresh.with_name(f"{fresh.name}.old")
    target.rename(aside)
    try:
        fresh.rename(target)
    except OSError:
        aside.rename(target)
        raise
    aside.rename(fresh)
