"""Texts or ready vectors as what the tasks compute with: checked rows of length one.    N rows, D width."""

from typing import Any

import numpy as np
from torch import Tensor

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.text.inputs import as_texts, has_texts
from munjang.types import Floats
from munjang.vectors.similarity import check_vectors, unit

BLOCK = 65_536  # rows: copies of a whole corpus of millions would not fit


def unit_vectors(
    items: Any, model: BiEncoder | None = None, what: str = "texts", progress: bool | None = None
) -> Floats:
    """Vectors of length one of texts, which the model encodes, or of ready vectors; float32 [N, D].

    Without a model texts are encoded by the bundled one. NaN, and a width that isn't the model's, are errors.
    """
    if isinstance(items, Tensor):
        items = items.detach().float().cpu().numpy()
    if isinstance(items, str):
        raise InputError(f"The {what} should be a list of strings or of vectors, not one string.")
    if has_texts(items):
        texts = as_texts(items, what)
        if not texts:
            return np.zeros((0, 1 if model is None else model.dimension), np.float32)
        items = (model or BiEncoder.load()).encode_document(texts, progress=progress)
    elif model is not None:
        check_width(np.asarray(items), model.dimension, what)
    return _unit(items, what)


def check_width(vectors: Any, width: int, what: str) -> None:
    """Refuse vectors that another model must have made."""
    if vectors.ndim == 2 and vectors.shape[1] != width:
        raise InputError(f"The {what} have {vectors.shape[1]} components, not {width}: they are of another model.")


def check_same_width(a_ND: Floats, b_MD: Floats | None) -> None:
    """Refuse two sets that can't be of one model; an empty one is of any."""
    if b_MD is not None and len(a_ND) and len(b_MD) and a_ND.shape[1] != b_MD.shape[1]:
        widths = f"{a_ND.shape[1]} and {b_MD.shape[1]}"
        raise InputError(f"The two sets have vectors of {widths} components; encode both with one model.")


def _unit(items: Any, what: str) -> Floats:
    vectors = items if isinstance(items, np.ndarray) and items.ndim == 2 else check_vectors(items, what)
    if vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise InputError(f"The {what} should be texts or vectors of numbers, not an array of {vectors.dtype}.")
    found = np.empty(vectors.shape, np.float32)
    for start in range(0, len(vectors), BLOCK):
        part = np.asarray(vectors[start : start + BLOCK], np.float32)
        is_finite = np.isfinite(part).all(1)
        if not is_finite.all():
            row = start + int(np.flatnonzero(~is_finite)[0])
            raise InputError(f"Vector {row} of the {what} holds NaN or infinity; drop it, or encode its text again.")
        found[start : start + BLOCK] = unit(part)
    return found
