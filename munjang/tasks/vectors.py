"""Turn texts or ready vectors into the unit vectors that the tasks compute with."""

from typing import Any

import numpy as np
from torch import Tensor

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.text.inputs import as_texts, has_texts
from munjang.types import Floats
from munjang.vectors.similarity import check_dimension, check_unit


def unit_vectors(
    items: Any, model: BiEncoder | None = None, what: str = "texts", progress: bool | None = None
) -> Floats:
    """Encode texts, or check ready vectors, and scale them to length one; float32 [N, D].

    Without a model the bundled one encodes. NaN and a dimension other than the model's are errors.
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
        check_dimension(np.asarray(items), model.dimension, what)
    return check_unit(items, what)
