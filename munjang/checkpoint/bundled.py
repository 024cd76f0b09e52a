"""The models that come with the package, in munjang/models: one table, and where each is.

A checkout without weights has the table and no folders; whoever asks for one of them is told so.
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
    "ko-en-small": Bundled("bi", "Korean and English sentences to vectors of 384 components"),
    "ko-en-reranker": Bundled("cross", "how well a passage answers a question, in Korean and English"),
}
WORDS = {"bi": "model", "cross": "re-ranker"}


def default(kind: str) -> str:
    """The name of the bundled model of a kind, `bi` or `cross`, which is there."""
    name = next(name for name, each in BUNDLED.items() if each.kind == kind)
    if not is_there(name):
        raise CheckpointError(
            f"No {WORDS[kind]} is bundled here ({FOLDER / name} holds no weights): give a folder or a Hub name, "
            "or install a release of Munjang, which brings them."
        )
    return name


def folder_of(name: str) -> Path:
    """Where a bundled model is."""
    if not is_there(name):
        raise CheckpointError(
            f"{name!r} is a model of the package, but {FOLDER / name} holds no weights: "
            "install a release of Munjang, which brings them, or give a folder."
        )
    return FOLDER / name


def is_there(name: str) -> bool:
    """Whether the weights of a bundled model came with this copy of the package."""
    return any((FOLDER / name).glob("*.safetensors"))


def name_of(folder: Path) -> str | None:
    """The name under which a folder is bundled; None: it is not. A name holds after the package has moved."""
    folder = folder.resolve()
    is_ours = folder.parent == FOLDER.resolve() and folder.name in BUNDLED
    return folder.name if is_ours else None
