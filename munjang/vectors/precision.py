"""Precision of stored vectors: float32, float16, int8, uint8, or one bit per dimension.    B texts, D dimension.

int8 and uint8 spread the range of each component, which is measured once over many texts and kept with the model,
over 256 steps. The range of the batch at hand would give the same text another code in every batch. A range for each
component, as sentence-transformers has it, moves and stretches them all differently, and cosines of int8 codes with
them; one range around zero for all leaves the cosines as they are.
"""

from collections.abc import Callable

import numpy as np

from munjang.errors import InputError, unknown
from munjang.types import Array, Floats


def _steps(vectors_BD: Floats, ranges_2D: Floats) -> Floats:
    low, high = ranges_2D
    step = (high - low) / 255
    return np.clip(np.floor((vectors_BD - low) / np.where(step == 0, 1, step)), 0, 255)


PRECISIONS: dict[str, Callable[[Floats, Floats], Array]] = {
    "float32": lambda vectors, ranges: vectors,
    "float16": lambda vectors, ranges: vectors.astype(np.float16),
    "int8": lambda vectors, ranges: (_steps(vectors, ranges) - 128).astype(np.int8),
    "uint8": lambda vectors, ranges: _steps(vectors, ranges).astype(np.uint8),
    "binary": lambda vectors, ranges: (np.packbits(vectors > 0, axis=1) - np.uint8(128)).view(np.int8),
    "ubinary": lambda vectors, ranges: np.packbits(vectors > 0, axis=1),
}
NEEDS_RANGES = ("int8", "uint8")


def check(precision: str, ranges_2D: Floats | None, dimension: int) -> None:
    """Refuse an unknown precision, and int8 without usable ranges, before any text is encoded."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if precision not in NEEDS_RANGES:
        return
    if ranges_2D is None:
        raise InputError(
            f"precision={precision!r} needs the range of each component: call model.calibrate(texts) once with a few "
            "thousand typical texts (model.save keeps it), or give ranges=array of shape [2, D]."
        )
    if ranges_2D.ndim != 2 or len(ranges_2D) != 2 or ranges_2D.shape[1] < dimension:
        raise InputError(f"The ranges should have the shape [2, {dimension}], not {list(ranges_2D.shape)}.")
    if not np.isfinite(ranges_2D).all() or (ranges_2D[0] > ranges_2D[1]).any():
        raise InputError("The ranges should be the smallest and the largest value of each component, in that order.")


def quantize(vectors_BD: Floats, precision: str, ranges_2D: Floats | None) -> Array:
    """Convert vectors to another precision; ranges of more dimensions are cut to these."""
    dimension = vectors_BD.shape[1]
    check(precision, ranges_2D, dimension)
    ranges = np.zeros((2, dimension), np.float32) if ranges_2D is None else ranges_2D
    return PRECISIONS[precision](vectors_BD, ranges[:, :dimension])


def measure(vectors_BD: Floats, one_range: bool = False) -> Floats:
    """Measure the smallest and largest value of each dimension [2, D]; `one_range`: one around zero for all."""
    if vectors_BD.ndim != 2 or len(vectors_BD) < 2:
        raise InputError("Ranges need at least two texts; a few thousand typical ones are better.")
    low, high = vectors_BD.min(0), vectors_BD.max(0)
    if one_range:
        high = np.full_like(high, max(-low.min(), high.max()))
        low = -high
    return np.stack([low, high]).astype(np.float32)
