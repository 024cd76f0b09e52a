"""Read and write model folders; every layout is a row of a table."""

import os
from pathlib import Path

from munjang.checkpoint import layouts, write
from munjang.checkpoint.atomic import remove_leftovers
from munjang.checkpoint.bundled import BUNDLED, default, name_of
from munjang.checkpoint.files import stated_dtype
from munjang.checkpoint.hub import BI_HUB, CROSS_HUB, Hub, resolve
from munjang.checkpoint.late import is_colbert, load_late, new_late
from munjang.checkpoint.layouts import new_encoder
from munjang.checkpoint.model import Model, check_length, describe, fingerprint, stated_weight
from munjang.checkpoint.onnx import compute_options
from munjang.checkpoint.shorten import shorten
from munjang.checkpoint.sparse import is_sparse, load_sparse, new_sparse
from munjang.checkpoint.static import unknown_id
from munjang.checkpoint.write_tokens import write_late as save_late
from munjang.checkpoint.write_tokens import write_sparse as save_sparse
from munjang.errors import CheckpointError, UnsupportedModel

__all__ = [
    "BI_HUB",
    "BUNDLED",
    "CROSS_HUB",
    "Hub",
    "Model",
    "check_length",
    "compute_options",
    "default",
    "describe",
    "fingerprint",
    "is_sparse",
    "kind",
    "load_bi",
    "load_cross",
    "load_late",
    "load_sparse",
    "name_of",
    "new_encoder",
    "new_late",
    "new_sparse",
    "resolve",
    "save_bi",
    "save_cross",
    "save_late",
    "save_sparse",
    "shorten",
    "stated_dtype",
    "stated_weight",
    "unknown_id",
]

OTHER_KINDS = {  # of sentence-transformers and PyLate
    "SparseEncoder": "SparseEncoder.load",
    "MultiVectorEncoder": "MultiVectorEncoder.load",
    "ColBERT": "MultiVectorEncoder.load",
}
save_bi = write.write_bi
save_cross = write.write_cross


def kind(model: str | os.PathLike[str]) -> str:
    """Return `bi`, `cross`, `late` or `sparse` for a folder or Hub name; a bare name may be of either organization."""
    try:
        folder = resolve(model)
    except CheckpointError as first:
        if "/" in os.fspath(model):
            raise
        try:
            folder = resolve(model, CROSS_HUB)
        except CheckpointError:
            raise first from None
    declared = "MultiVectorEncoder" if is_colbert(folder) else layouts.declared_kind(folder)
    kinds = {"CrossEncoder": "cross", "MultiVectorEncoder": "late", "ColBERT": "late", "SparseEncoder": "sparse"}
    return kinds.get(declared, "bi")


def load_bi(folder: Path, pooling: tuple[str, ...] | None = None) -> Model:
    """Read a bi-encoder from a folder of any known layout; `pooling` replaces the folder's own."""
    remove_leftovers(folder)
    declared = layouts.declared_kind(folder)
    if declared == "CrossEncoder" and (folder / "modules.json").is_file():
        raise CheckpointError(f"{folder} is a cross-encoder; load it with CrossEncoder.load.")
    if declared not in ("CrossEncoder", "SentenceTransformer"):
        loader = OTHER_KINDS.get(declared)
        advice = "no encoder of ours reads that" if loader is None else f"load it with {loader}"
        raise UnsupportedModel(f"{folder} is a {declared}; {advice}.")
    for _, fits, read in layouts.BI_LAYOUTS:
        if fits(folder):
            return read(folder, pooling)
    raise CheckpointError(f"{folder} is not a model folder: it has neither modules.json nor config.json.")


def load_cross(folder: Path) -> Model:
    """Read a cross-encoder from a folder of any known layout."""
    remove_leftovers(folder)
    if layouts.declared_kind(folder) != "CrossEncoder" and (folder / "modules.json").is_file():
        raise CheckpointError(
            f"{folder} is a bi-encoder; load it with BiEncoder.load, or start a cross-encoder with CrossEncoder.create."
        )
    for _, fits, read in layouts.CROSS_LAYOUTS:
        if fits(folder):
            return read(folder)
    raise CheckpointError(f"{folder} is not a model folder: it has neither modules.json nor config.json.")
