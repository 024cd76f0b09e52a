"""Embeddings in fewer bits: quantize_embeddings. int8 and uint8 need ranges, never those of the vectors at hand."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from munjang.compat import gaps
from munjang.errors import InputError, unknown
from munjang.types import Array
from munjang.vectors import precision as precisions


def quantize_embeddings(
    embeddings: Any, precision: str, ranges: Any = None, calibration_embeddings: Any = None
) -> Array | list[Array]:
    """Embeddings in another precision: float32, int8, uint8, binary or ubinary.

    int8 and uint8 spread the range of each component over 256 steps. It comes from `ranges` ([2, D]) or from
    `calibration_embeddings`, a few thousand typical ones: with the range of the batch at hand, which
    sentence-transformers falls back to, the same text gets another code in every batch.
    """
    if precision not in precisions.PRECISIONS:
        raise unknown("precision", precision, precisions.PRECISIONS)
    if isinstance(embeddings, list):
        if not embeddings:
            return []
        rows = [_array(row) for row in embeddings]
        if rows[0].ndim == 2:  # token vectors, one matrix a text
            return [_quantize(row, precision, ranges, calibration_embeddings) for row in rows]
        return _quantize(np.stack(rows), precision, ranges, calibration_embeddings)
    return _quantize(_array(embeddings), precision, ranges, calibration_embeddings)


def _quantize(vectors: Any, precision: str, ranges: Any, calibration: Any) -> Array:
    if vectors.dtype.kind != "f":
        raise InputError(f"The embeddings to quantize should be floats, not {vectors.dtype}.")
    if precision in precisions.NEEDS_RANGES and ranges is None:
        if calibration is None:
            raise InputError(
                f"precision={precision!r} needs the range of each component: give ranges=array of shape [2, D], or "
                "calibration_embeddings=a few thousand typical ones. The embeddings at hand are not used: the same "
                "text would get another code in every batch."
            )
        ranges = precisions.measure(_array(calibration))
    if precision == "float32":
        return np.asarray(vectors, np.float32)
    limits = None if ranges is None else np.asarray(ranges, np.float32)
    codes = precisions.quantize(vectors.reshape(-1, vectors.shape[-1]), precision, limits)
    return codes.reshape(*vectors.shape[:-1], codes.shape[-1])


def _array(vectors: Any) -> Any:
    """As numpy; bfloat16, which numpy does not have, as float32."""
    if isinstance(vectors, Tensor):
        vectors = vectors.detach().cpu()
        return (vectors.float() if vectors.dtype == torch.bfloat16 else vectors).numpy()
    return np.asarray(vectors)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise gaps.missing_name("munjang.compat.quantization", name)
