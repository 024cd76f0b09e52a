"""Vectors with fewer components, for clustering.    N rows, D width, R reduced width."""

from collections.abc import Callable

import numpy as np

from munjang.errors import InputError, MissingExtra, unknown
from munjang.types import Floats
from munjang.vectors.principal import principal_components
from munjang.vectors.similarity import unit


def unit_components(vectors_ND: Floats, width: int, seed: int = 0) -> Floats:
    """Principal components at length one, so that distances are those of angles; measured better for k-means."""
    return unit(principal_components(vectors_ND, width))


def umap(vectors_ND: Floats, width: int, seed: int = 0) -> Floats:
    """UMAP with BERTopic's settings; a seed makes it repeatable and keeps it on one core."""
    try:
        from umap import UMAP
    except ImportError:
        raise MissingExtra("umap-learn", "umap", 'reduce="umap"') from None
    if len(vectors_ND) < width + 2:
        raise InputError(
            f"UMAP to {width} components needs at least {width + 2} texts, not {len(vectors_ND)}; use pca."
        )
    neighbours = min(15, len(vectors_ND) - 1)
    made = UMAP(n_neighbors=neighbours, n_components=width, min_dist=0.0, metric="cosine", random_state=seed)
    return np.asarray(made.fit_transform(vectors_ND), np.float32)


# name: how, and the width that suits it
REDUCERS: dict[str, tuple[Callable[[Floats, int, int], Floats], int]] = {
    "pca": (unit_components, 50),
    "umap": (umap, 5),
    "none": (lambda vectors, width, seed: vectors, 0),
}


def reduce(vectors_ND: Floats, how: str = "pca", width: int | None = None, seed: int = 0) -> Floats:
    """Rows of `width` components, by the name of the way; None: what suits it."""
    if how not in REDUCERS:
        raise unknown("way to reduce", how, REDUCERS)
    reducer, usual = REDUCERS[how]
    if width is not None and width < 1:
        raise InputError(f"width must be at least 1, not {width}.")
    if width is not None and how == "none":
        raise InputError('reduce="none" keeps the width; leave width out.')
    if how == "pca" and (width or usual) >= vectors_ND.shape[1]:
        return vectors_ND
    return reducer(vectors_ND, width or usual, seed)
