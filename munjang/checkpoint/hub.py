"""Resolve a model's name to a folder on disk: a path, a bundled model, anything else through huggingface_hub."""

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from munjang.checkpoint import bundled
from munjang.checkpoint.files import (
    ADAPTER_FILES,
    ONNX_FILES,
    RANGES_FILE,
    TEXT_FILES,
    WEIGHT_FILES,
    has_weights,
    inside,
    load_json,
)
from munjang.errors import CheckpointError, InputError, MunjangError

WEIGHTED_MODULES = ("Transformer", "StaticEmbedding", "Dense", "LayerNorm")  # they bring weights of their own


@dataclass(frozen=True)
class Hub:
    """Options for fetching a name from the Hub."""

    organization: str | None = "sentence-transformers"  # of bare names: that is how its models are known
    revision: str | None = None
    cache_folder: str | Path | None = None
    token: str | bool | None = None
    local_files_only: bool = False


BI_HUB = Hub()
CROSS_HUB = Hub(organization="cross-encoder")  # of cross-encoders' bare names


def resolve(model: str | os.PathLike[str], hub: Hub = BI_HUB) -> Path:
    """Return the folder of a model: an existing one, a bundled one, or that of a Hub name such as `owner/name`."""
    if not isinstance(model, str | os.PathLike) or not os.fspath(model):
        raise InputError(f"A model is given by its folder or its name on the Hub, not by {model!r}.")
    name, path = os.fspath(model), Path(model)
    try:
        path = path.expanduser()
        if path.is_dir():
            return path
        is_file = path.exists()
    except (OSError, RuntimeError):  # too long a name, or ~ of somebody who is not here
        is_file = False
    if is_file:
        raise CheckpointError(f"{path} is a file; give the folder that holds the model.")
    if isinstance(model, str) and name in bundled.BUNDLED:
        return bundled.folder_of(name)
    if isinstance(model, os.PathLike) or name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise CheckpointError(f"There is no folder {path}.")
    if "/" in name or hub.organization is None:
        return _download(name, hub)
    try:
        return _download(f"{hub.organization}/{name}", hub)
    except CheckpointError as first:  # transformers' own models from before the Hub have bare names there: roberta-base
        try:
            return _download(name, hub)
        except CheckpointError:
            ours = ", ".join(bundled.BUNDLED)
            raise CheckpointError(f"{name!r} is neither a folder here nor a bundled model ({ours}). {first}") from None


def _download(name: str, hub: Hub) -> Path:
    """Fetch texts and safetensors first, then other weights only where a folder has none yet."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    safetensors, *others = WEIGHT_FILES
    try:
        folder = _fetch(name, hub, hub.revision, [*TEXT_FILES, *safetensors, RANGES_FILE, *ADAPTER_FILES])
        is_snapshot = folder.parent.name == "snapshots"
        revision = folder.name if is_snapshot else hub.revision  # so that all files are of one commit
        if (folder / ONNX_FILES[0]).is_file():
            _fetch(name, hub, revision, [*ONNX_FILES])
            return folder
        modules = _modules(folder)
        inner = [path for path in modules if path not in ("", ".")]
        if inner:
            _fetch(name, hub, revision, [f"{path}/{file}" for path in inner for file in (*TEXT_FILES, *safetensors)])
        for files in others:
            bare = [path for path in modules if modules[path] in WEIGHTED_MODULES and not has_weights(folder / path)]
            if bare:
                _fetch(name, hub, revision, [str(PurePosixPath(path) / file) for path in bare for file in files])
    except MunjangError:
        raise
    except HFValidationError as error:
        raise CheckpointError(f"{name!r} is neither a folder here nor a name on the Hub.") from error
    except GatedRepoError as error:
        raise CheckpointError(
            f"{name!r} is gated: ask for access on its page on the Hub, then log in with `hf auth login`."
        ) from error
    except RepositoryNotFoundError as error:
        raise CheckpointError(
            f"{name!r} is not a folder here, and the Hub knows no such model (a private one needs `hf auth login`)."
        ) from error
    except RevisionNotFoundError as error:
        raise CheckpointError(f"{name!r} has no revision {hub.revision!r} on the Hub.") from error
    except LocalEntryNotFoundError as error:
        raise CheckpointError(
            f"There is no folder {name!r}, no copy in the Hub's cache, and the Hub can't be reached "
            "(or HF_HUB_OFFLINE is set). Give a folder, or fetch the model once while online."
        ) from error
    except Exception as error:  # other answers of the Hub, and every way in which a connection breaks
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(f"{name!r} is not a folder here and can't be fetched from the Hub: {reason}") from error
    return folder


def _fetch(name: str, hub: Hub, revision: str | None, patterns: list[str]) -> Path:
    from huggingface_hub import constants, snapshot_download

    return Path(
        snapshot_download(
            name,
            revision=revision,
            cache_dir=hub.cache_folder,
            token=hub.token,
            # offline too: some versions still ask the Hub for the tree of a commit whose files are all here
            local_files_only=hub.local_files_only or constants.HF_HUB_OFFLINE,
            allow_patterns=patterns,
        )
    )


def _modules(folder: Path) -> dict[str, str]:
    """Return each module's subfolder and class; a plain folder is one transformer."""
    if not (folder / "modules.json").is_file():
        return {"": "Transformer"}
    entries = load_json(folder / "modules.json")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CheckpointError(f"{folder / 'modules.json'} should hold a list of modules.")
    paths = [entry.get("path", "") for entry in entries]
    for path in paths:
        inside(folder, path)
    return {path: str(entry.get("type")).rpartition(".")[2] for path, entry in zip(paths, entries, strict=True)}
