"""Reduce the dimension of vectors, for clustering.    N rows, D dimension."""

from collections.abc import Callable

import numpy as np

from munjang.errors import InputError, MissingExtra, unknown
from munjang.types import Floats
from munjang.vectors.principal import principal_components
from munjang.vectors.similarity import unit


def unit_components(vectors_ND: Floats, dimension: int, seed: int = 0) -> Floats:
    """Return principal components at length one: distances are those of angles, which measured better for k-means."""
    return unit(principal_components(vectors_ND, dimension))


def umap(vectors_ND: Floats, dimension: int, seed: int = 0) -> Floats:
    """Reduce by UMAP with BERTopic's settings; a seed makes it repeatable and keeps it on one core."""
    try:
        from umap import UMAP
    except ImportError:
        raise MissingExtra("umap-learn", "umap", 'reduce="umap"') from None
    if len(vectors_ND) < dimension + 2:
        raise InputError(
            f"UMAP to {dimension} dimensions needs at least {dimension + 2} texts, not {len(vectors_ND)}; use pca."
        )
    neighbours = min(15, len(vectors_ND) - 1)
    made = UMAP(n_neighbors=neighbours, n_components=dimension, min_dist=0.0, metric="cosine", random_state=seed)
    return np.asarray(made.fit_transform(vectors_ND), np.float32)


# By name: the function, and the dimension that suits it
REDUCERS: dict[str, tuple[Callable[[Floats, int, int], Floats], int]] = {
    "pca": (unit_components, 50),
    "umap": (umap, 5),
    "none": (lambda vectors, dimension, seed: vectors, 0),
}


def reduce(vectors_ND: Floats, how: str = "pca", dimension: int | None = None, seed: int = 0) -> Floats:
    """Reduce vectors by the way of this name; `dimension` None takes what suits it."""
    if how not in REDUCERS:
        raise unknown("way to reduce", how, REDUCERS)
    reducer, usual = REDUCERS[how]
    if dimension is not None and dimension < 1:
        raise InputError(f"dimension must be at least 1, not {dimension}.")
    if dimension is not None and how == "none":
        raise InputError('reduce="none" keeps the dimension; leave dimension out.')
    if how == "pca" and (dimension or usual) >= vectors_ND.shape[1]:
        return vectors_ND
    return reducer(vectors_ND, dimension or usual, seed)
