"""Clustering: texts or vectors into groups, by one of four methods.    N rows, D dimension, K clusters.

>>> from munjang import BiEncoder
>>> from munjang.tasks.cluster import ClusterConfig, cluster
>>> config = ClusterConfig(method="kmeans", num_clusters=2)
>>> cluster(["apples", "pears", "a car"], BiEncoder.load(), config).labels_N.tolist()
[0, 0, 1]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.display import table
from munjang.errors import InputError, MissingExtra, unknown
from munjang.tasks.cluster.community import communities
from munjang.tasks.cluster.config import ClusterConfig
from munjang.tasks.paraphrases.neighbours import MAX_ROUNDING, components, neighbours
from munjang.tasks.vectors import unit_vectors
from munjang.types import Floats, Ints
from munjang.vectors.kmeans import kmeans, nearest_centres

MAX_COMPONENT_ROWS = 15_000  # rows of a component: scikit-learn takes 22 bytes for each of their distances, 5 GB
MAX_KMEANS_SCORES = 1 << 28  # distances of one start: 1 GB


@dataclass(frozen=True)
class Clustering:
    """The cluster of each row, from 0, the largest first; -1 where a row is in none."""

    method: str
    labels_N: Ints
    num_clusters: int

    def members(self, label: int) -> Ints:
        """Return the rows of a cluster."""
        return np.flatnonzero(self.labels_N == label)

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each cluster."""
        return [len(self.members(label)) for label in range(self.num_clusters)]

    def __repr__(self) -> str:
        rest = int((self.labels_N < 0).sum())
        return (
            f"Clustering({self.num_clusters} clusters by {self.method}, {len(self.labels_N):,} rows, {rest:,} in none)"
        )

    def _repr_html_(self) -> str:
        sizes = [[str(label), f"{size:,}"] for label, size in enumerate(self.sizes)]
        return table(repr(self), ["cluster", "rows"], sizes)


@dataclass(frozen=True)
class Place:
    """Where to compute, and whether to show progress."""

    device: str | None
    progress: bool | None


Method: TypeAlias = Callable[[Floats, ClusterConfig, Place], Ints]


def cluster(
    texts: Any,
    model: BiEncoder | None = None,
    config: ClusterConfig = ClusterConfig(),  # noqa: B008  # frozen
    device: str | None = None,
    progress: bool | None = None,
) -> Clustering:
    """Put texts or vectors into clusters: communities, kmeans, agglomerative or hdbscan.

    Vectors are taken at length one, so that cosine and Euclidean distance order them alike.

    Returns a Clustering; raises InputError for an unknown method.

    >>> cluster(["A cat sleeps.", "A kitten naps."] * 2, config=ClusterConfig(threshold=0.7, min_size=2)).sizes
    [4]
    """
    if config.method not in METHODS:
        raise unknown("method", config.method, METHODS)
    vectors_ND = unit_vectors(texts, model, "texts", progress)
    if not len(vectors_ND):
        return Clustering(config.method, np.zeros(0, np.int64), 0)
    return _by_size(config.method, METHODS[config.method](vectors_ND, config, Place(device, progress)))


def _by_size(method: str, labels_N: Ints) -> Clustering:
    """Number the clusters by size, the largest 0; of equal ones the one with the first row."""
    names, first, counts = np.unique(labels_N[labels_N >= 0], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    number = np.full(int(names.max(initial=-1)) + 2, -1)  # the last is for -1
    number[names[order]] = np.arange(len(names))
    return Clustering(method, number[labels_N], len(names))


def _communities(vectors_ND: Floats, config: ClusterConfig, place: Place) -> Ints:
    found = communities(
        vectors_ND,
        threshold=config.threshold,
        min_size=config.min_size,
        is_exact=config.is_exact,
        device=place.device,
        progress=place.progress,
    )
    labels = np.full(len(vectors_ND), -1)
    for label, places in enumerate(found):
        labels[places] = label
    return labels


def _kmeans(vectors_ND: Floats, config: ClusterConfig, place: Place) -> Ints:
    count = config.num_clusters
    if count is None:
        count = max(1, round(math.sqrt(len(vectors_ND) / 2)))
    if not 1 <= count <= len(vectors_ND):
        raise InputError(
            f"{len(vectors_ND)} texts can't make {count} clusters; num_clusters must lie between 1 and their number."
        )
    if len(vectors_ND) * count <= MAX_KMEANS_SCORES:
        return kmeans(vectors_ND, count, config.seed, num_starts=3, progress=place.progress).clusters_N
    # centres from a sample, then every row to its nearest centre
    chosen = np.random.default_rng(config.seed).permutation(len(vectors_ND))[: max(MAX_KMEANS_SCORES // count, count)]
    some_MD = vectors_ND[np.sort(chosen)]
    centres_KD = kmeans(some_MD, count, config.seed, num_starts=1, progress=place.progress).centres_KD
    return nearest_centres(vectors_ND, centres_KD)


def _agglomerative(vectors_ND: Floats, config: ClusterConfig, place: Place) -> Ints:
    """Merge the two closest clusters while their cosine is at least the threshold.

    Two clusters merge only if some pair of theirs reaches the threshold, whatever the linkage; so each component of
    the graph of neighbours is clustered by itself, and no matrix of all distances is needed.
    """
    graph = neighbours(vectors_ND, config.threshold, config.is_exact, place.device, place.progress)
    labels = components(graph)
    if config.linkage == "single" or not len(graph.neighbours_E):
        return labels
    try:
        from sklearn.cluster import AgglomerativeClustering
    except ImportError:
        raise MissingExtra("scikit-learn", "cluster", f"{config.linkage} linkage") from None
    order = np.argsort(labels, kind="stable")
    found, following = np.empty(len(labels), np.int64), 0
    for rows in np.split(order, np.cumsum(np.bincount(labels))[:-1]):
        parts = np.zeros(len(rows), np.int64)
        if len(rows) > MAX_COMPONENT_ROWS:
            raise InputError(
                f"{len(rows):,} texts hang together at the threshold {config.threshold:g}, "
                f"more than {MAX_COMPONENT_ROWS:,}; "
                "raise it, or take linkage single or method communities."
            )
        if len(rows) > 1:
            distances = vectors_ND[rows] @ vectors_ND[rows].T
            np.clip(np.subtract(1, distances, out=distances), 0, None, out=distances)
            maker = AgglomerativeClustering(
                n_clusters=None,
                metric="precomputed",
                linkage=config.linkage,
                distance_threshold=1 - config.threshold + MAX_ROUNDING,  # it merges below, we merge at it too
            )
            parts = maker.fit_predict(distances)
        found[rows] = parts + following
        following += int(parts.max()) + 1
    return found


def _hdbscan(vectors_ND: Floats, config: ClusterConfig, place: Place) -> Ints:
    try:
        from sklearn.cluster import HDBSCAN
    except ImportError:
        raise MissingExtra("scikit-learn", "cluster", "HDBSCAN") from None
    if len(vectors_ND) < config.min_size:
        return np.full(len(vectors_ND), -1)
    if not np.ptp(vectors_ND, axis=0).any():  # it looks for differences, and would call all of them noise
        return np.zeros(len(vectors_ND), np.int64)
    labels: Ints = HDBSCAN(min_cluster_size=config.min_size, copy=True).fit_predict(vectors_ND).astype(np.int64)
    return np.where(labels < 0, -1, labels)


METHODS: dict[str, Method] = {
    "communities": _communities,
    "kmeans": _kmeans,
    "agglomerative": _agglomerative,
    "hdbscan": _hdbscan,
}
