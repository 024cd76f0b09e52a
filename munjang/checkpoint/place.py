"""Putting a model's folder in its place, beside files there that belong to no model."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from munjang.checkpoint.files import ONNX_FILES, RANGES, TEXT_FILES, WEIGHT_FILES, load_json
from munjang.checkpoint.folders import replacing_folder
from munjang.errors import CheckpointError, MunjangError

# What goes when another model takes the place; with it the folders that modules.json names
OWNED = (*TEXT_FILES, *(name for names in WEIGHT_FILES for name in names), RANGES, "generation_config.json")
MARKS = ("config.json", "modules.json", "tokenizer.json")  # a folder with one of these holds a model


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
