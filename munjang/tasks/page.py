"""Vectors as points of a page.    N vectors, D width."""

import numpy as np

from munjang.types import Floats
from munjang.vectors.principal import principal_components


def plane(vectors_ND: Floats) -> Floats:
    """Return two coordinates for each vector: along the two directions in which they differ most.

    >>> plane(np.array([[0, 1], [0, 3]], np.float32)).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    coordinates = principal_components(vectors_ND, 2)
    return np.pad(coordinates, ((0, 0), (0, 2 - coordinates.shape[1])))
