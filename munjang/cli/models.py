"""Load any kind of model that a folder or Hub name states."""

from typing import Any


def load_any(path: str, **options: Any) -> Any:
    """Load a bi-encoder, cross-encoder, late-interaction or sparse model."""
    from munjang import checkpoint  # imports torch: not for --help
    from munjang.training.train import KINDS

    kind: Any = KINDS[checkpoint.kind(path)]
    return kind.load(path, **options)
