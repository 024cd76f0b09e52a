"""k-means: points to k clusters, by Lloyd's algorithm from k-means++ seeds.    N points, K clusters, D dimension."""

from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError
from munjang.progress import Progress
from munjang.types import Floats, Ints
from munjang.vectors.similarity import BLOCK_ROWS

TOLERANCE = 1e-4  # of the points' variance: centres that move less have settled


@dataclass(frozen=True)
class Clusters:
    """The clusters of the best of several starts."""

    clusters_N: Ints
    centres_KD: Floats
    inertia: float  # sum of squared distances to the own centre


def kmeans(
    points_ND: Floats,
    num_clusters: int,
    seed: int = 0,
    num_starts: int = 10,
    max_rounds: int = 100,
    progress: bool | None = False,
) -> Clusters:
    """Find the clusters with the least inertia of `num_starts` starts; the same seed gives the same clusters.

    Progress counts drawn centres and rounds; their total is not known in advance.

    >>> first, second, third = kmeans(np.array([[0.0], [0.1], [9.0]], np.float32), 2).clusters_N.tolist()
    >>> first == second, first == third
    (True, False)
    """
    points = np.ascontiguousarray(points_ND, np.float32)
    if not 1 <= num_clusters <= len(points):
        raise InputError(f"{num_clusters} clusters can't be made of {len(points)} points.")
    points = points - points.mean(0)  # squares of differences lose less near zero
    random = np.random.default_rng(seed)
    squares_N = np.einsum("nd,nd->n", points, points)
    with Progress(None, "k-means, steps", progress) as bar:
        starts = []
        for _ in range(max(num_starts, 1)):
            centres_KD = _seeds(points, squares_N, num_clusters, random, bar)
            starts.append(_settle(points, squares_N, centres_KD, max_rounds, bar))
    best = min(starts, key=lambda clusters: clusters.inertia)
    return Clusters(best.clusters_N, best.centres_KD + np.asarray(points_ND, np.float32).mean(0), best.inertia)


def _seeds(points: Floats, squares_N: Floats, num_clusters: int, random: np.random.Generator, bar: Progress) -> Floats:
    """Draw centres by k-means++: each is the best of a few points, drawn by their squared distance to the others."""
    num_draws = 2 + int(np.log(num_clusters))
    chosen = [int(random.integers(len(points)))]
    nearest_N = _distances(points, squares_N, points[chosen])[:, 0]
    for _ in range(1, num_clusters):
        bar.advance()
        total = float(nearest_N.sum(dtype=np.float64))
        if total <= 0:  # fewer distinct points than clusters
            chosen.append(int(random.integers(len(points))))
            continue
        draws = np.searchsorted(np.cumsum(nearest_N, dtype=np.float64), random.random(num_draws) * total)
        draws = np.minimum(draws, len(points) - 1)
        closer = np.minimum(nearest_N[:, None], _distances(points, squares_N, points[draws]))
        best = int(np.argmin(closer.sum(0, dtype=np.float64)))
        chosen.append(int(draws[best]))
        nearest_N = closer[:, best]
    return points[chosen]


def _settle(points: Floats, squares_N: Floats, centres: Floats, max_rounds: int, bar: Progress) -> Clusters:
    limit = TOLERANCE * float(points.var(0).mean())
    for _ in range(max_rounds):
        bar.advance()
        distances_NK = _distances(points, squares_N, centres)
        clusters_N = distances_NK.argmin(1)
        moved = _centres(points, clusters_N, distances_NK)
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if shift <= limit:
            break
    distances_NK = _distances(points, squares_N, centres)
    clusters_N = distances_NK.argmin(1)
    return Clusters(clusters_N, centres, float(distances_NK.min(1).sum(dtype=np.float64)))


def _centres(points: Floats, clusters_N: Ints, distances_NK: Floats) -> Floats:
    num_clusters = distances_NK.shape[1]
    sizes_K = np.bincount(clusters_N, minlength=num_clusters)
    order = np.argsort(clusters_N, kind="stable")
    used = np.flatnonzero(sizes_K)
    starts = (np.cumsum(sizes_K) - sizes_K)[used]
    centres = np.zeros((num_clusters, points.shape[1]), np.float32)
    centres[used] = np.add.reduceat(points[order], starts, axis=0) / sizes_K[used, None]
    empty = np.flatnonzero(sizes_K == 0)
    if len(empty):  # an empty cluster begins again at the points that are farthest from their centre
        farthest = np.argsort(-distances_NK.min(1), kind="stable")[: len(empty)]
        centres[empty] = points[farthest]
    return centres


def nearest_centres(points_ND: Floats, centres_KD: Floats) -> Ints:
    """Return the cluster of each point, whether or not the centres come from these points."""
    half_K = np.einsum("kd,kd->k", centres_KD, centres_KD) / 2
    blocks = (points_ND[start : start + BLOCK_ROWS] for start in range(0, len(points_ND), BLOCK_ROWS))
    clusters = [(block @ centres_KD.T - half_K).argmax(1) for block in blocks]
    return np.concatenate(clusters) if clusters else np.zeros(0, np.int64)


def _distances(points: Floats, squares_N: Floats, centres: Floats) -> Floats:
    squares = squares_N[:, None] + np.einsum("kd,kd->k", centres, centres)[None] - 2 * (points @ centres.T)
    return np.maximum(squares, 0)
