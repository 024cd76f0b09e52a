"""Find the models that come with the package, in munjang/models.

A checkout without weights has the table and no folders; asking for one of them is an error that says so.
"""

from dataclasses import dataclass
from pathlib import Path

from munjang.errors import CheckpointError

FOLDER = Path(__file__).parents[1] / "models"


@dataclass(frozen=True)
class Bundled:
    """A model of the package."""

    kind: str  # bi or cross
    description: str


# The first one of a kind is what `load` takes where no model is named
BUNDLED = {
    "ko-en-small": Bundled("bi", "Korean and English sentences to vectors of dimension 384"),
    "ko-en-reranker": Bundled("cross", "how well a passage answers a question, in Korean and English"),
}
KIND_NAMES = {"bi": "model", "cross": "re-ranker"}


def default(kind: str) -> str:
    """Return the name of the bundled model of a kind, `bi` or `cross`; an error where its weights are missing."""
    name = next(name for name, bundled in BUNDLED.items() if bundled.kind == kind)
    if not is_there(name):
        raise CheckpointError(
            f"No {KIND_NAMES[kind]} is bundled here ({FOLDER / name} holds no weights): give a folder or a Hub name, "
            "or install a release of Munjang, which brings them."
        )
    return name


def folder_of(name: str) -> Path:
    """Return the folder of a bundled model."""
    if not is_there(name):
        raise CheckpointError(
            f"{name!r} is a model of the package, but {FOLDER / name} holds no weights: "
            "install a release of Munjang, which brings them, or give a folder."
        )
    return FOLDER / name


def is_there(name: str) -> bool:
    """Tell whether the weights of a bundled model came with this copy of the package."""
    return any((FOLDER / name).glob("*.safetensors"))


def name_of(folder: Path) -> str | None:
    """Return the name of a bundled folder, which holds after the package has moved; None for other folders."""
    folder = folder.resolve()
    is_ours = folder.parent == FOLDER.resolve() and folder.name in BUNDLED
    return folder.name if is_ours else None
