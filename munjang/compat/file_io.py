"""Files of a model by name: in a folder, or in a repository of the Hub."""

from pathlib import Path
from typing import Any

from huggingface_hub import hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, HFValidationError, LocalEntryNotFoundError

from munjang.compat.environment import http_get

__all__ = ["http_get", "is_sentence_transformer_model", "load_dir_path", "load_file_path"]


def is_sentence_transformer_model(
    model_name_or_path: str,
    token: bool | str | None = None,
    cache_folder: str | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
) -> bool:
    """Tell whether a model has a modules.json."""
    found = load_file_path(model_name_or_path, "modules.json", "", token, cache_folder, revision, local_files_only)
    return found is not None


def load_file_path(
    model_name_or_path: str,
    filename: str | Path,
    subfolder: str = "",
    token: bool | str | None = None,
    cache_folder: str | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
) -> str | None:
    """Return the path of a file of a model, fetched if it is on the Hub, or None if the model has no such file."""
    path = Path(model_name_or_path, subfolder, filename)
    if path.exists() or Path(model_name_or_path).is_dir():
        return str(path) if path.exists() else None
    inner = Path(subfolder, filename)
    options: dict[str, Any] = {
        "token": token,
        "cache_dir": cache_folder,
        "revision": revision,
        "local_files_only": local_files_only,
    }
    try:
        return str(hf_hub_download(model_name_or_path, inner.name, subfolder=inner.parent.as_posix(), **options))
    except (EntryNotFoundError, HFValidationError, LocalEntryNotFoundError):
        return None


def load_dir_path(
    model_name_or_path: str,
    subfolder: str | Path,
    token: bool | str | None = None,
    cache_folder: str | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
) -> str | None:
    """Return the path of a folder of a model, fetched if it is on the Hub; from the cache if that can't be reached."""
    path = Path(model_name_or_path, subfolder)
    if path.exists() or Path(model_name_or_path).is_dir():
        return str(path) if path.exists() else None
    name = Path(subfolder).as_posix()
    options: dict[str, Any] = {"token": token, "cache_dir": cache_folder, "revision": revision}
    options["allow_patterns"] = None if name == "." else f"{name}/**"
    try:
        root = snapshot_download(model_name_or_path, local_files_only=local_files_only, **options)
    except (HFValidationError, LocalEntryNotFoundError):
        return None
    except Exception as first:  # of the network or the Hub
        try:
            root = snapshot_download(model_name_or_path, local_files_only=True, **options)
        except LocalEntryNotFoundError:
            raise first from None
    return str(Path(root, name))
