"""Points to groups, for topics: k-means with a number of groups that it can find itself, or HDBSCAN.

N points, M others, K groups, D dimension.
"""

from itertools import pairwise

import numpy as np

from munjang.errors import InputError, MissingExtra, unknown
from munjang.progress import Progress
from munjang.tasks.topics.config import CLUSTERS
from munjang.types import Floats, Ints
from munjang.vectors.kmeans import kmeans, nearest_centres

NUM_SAMPLE_POINTS = 10_000  # on which numbers of groups are tried
MAX_KMEANS_POINTS = 200_000  # from which centres are computed; the others go to the nearest one
MIN_POINTS_FOR_HALVES = 200  # below, two halves would be too small
MAX_GROUPS = 160  # the largest number that is tried
GROUPS_STEP = 1.4  # from one number that is tried to the next


def group(
    points_ND: Floats, how: str, num_topics: int | None, min_size: int, seed: int, progress: bool | None = False
) -> Ints:
    """Return the group of each point; -1 is none (HDBSCAN only)."""
    if how not in CLUSTERS:
        raise unknown("way to cluster", how, CLUSTERS)
    if how == "hdbscan":
        return _dense(points_ND, min_size)
    num_distinct = _num_distinct(points_ND)
    if num_topics is None:
        num_topics = best_number(points_ND, min(len(points_ND) // max(min_size, 1), num_distinct), seed, progress)
    if num_topics > num_distinct:
        raise InputError(
            f"num_topics={num_topics}, but there are only {num_distinct} different texts; ask for at most as many."
        )
    return _by_kmeans(points_ND, num_topics, seed)


def _num_distinct(points_ND: Floats) -> int:
    rows = np.ascontiguousarray(points_ND) + 0.0  # there are two zeros
    return len(np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))))


def _by_kmeans(points_ND: Floats, num_groups: int, seed: int) -> Ints:
    if len(points_ND) <= MAX_KMEANS_POINTS:
        return kmeans(points_ND, num_groups, seed, num_starts=4).clusters_N
    chosen = np.random.default_rng(seed).choice(len(points_ND), MAX_KMEANS_POINTS, replace=False)
    centres_KD = kmeans(points_ND[np.sort(chosen)], num_groups, seed, num_starts=4).centres_KD
    return nearest_centres(points_ND, centres_KD)


def best_number(points_ND: Floats, most: int, seed: int = 0, progress: bool | None = False) -> int:
    """Find the number of groups that separates points best, by the mean silhouette to centres; 1 where none does.

    The simplified silhouette of a point is 1 - a / b: a to its own centre, b to the next one (Hruschka and others).
    Each half of the points has the centres of the other one: near those that were made for it, any number looks better
    than a smaller one.
    """
    most = min(most, MAX_GROUPS)
    if most < 2:
        return 1
    random = np.random.default_rng(seed)
    sample = (
        points_ND
        if len(points_ND) <= NUM_SAMPLE_POINTS
        else points_ND[random.choice(len(points_ND), NUM_SAMPLE_POINTS, replace=False)]
    )
    order = random.permutation(len(sample))
    one, other = sample[order[::2]], sample[order[1::2]]
    sides = [(one, other), (other, one)] if len(sample) >= MIN_POINTS_FOR_HALVES else [(sample, sample)]

    def score(number: int) -> float:
        return sum(silhouette(points, seen, number, seed) for points, seen in sides) / len(sides)

    tried = sorted({min(round(2 * GROUPS_STEP**power), most) for power in range(40)})
    scores = {}
    with Progress(len(tried), "trying numbers of topics", enabled=progress) as counter:
        for number in tried:
            scores[number] = score(number)
            counter.advance()
    for _ in range(2):  # between the best and its neighbours
        ordered = sorted(scores)
        place = ordered.index(max(scores, key=lambda number: scores[number]))
        near = ordered[max(place - 1, 0) : place + 2]
        for low, high in pairwise(near):
            middle = (low + high) // 2
            if middle not in scores:
                scores[middle] = score(middle)
    best = max(scores, key=lambda number: scores[number])
    return best if scores[best] > 0 else 1


def silhouette(points_ND: Floats, seen_MD: Floats, num_groups: int, seed: int = 0) -> float:
    """Return the mean silhouette of points to the centres of those seen: 0, no nearer to their own, to 1."""
    if not 2 <= num_groups <= len(seen_MD):
        return 0.0
    centres_KD = kmeans(seen_MD, num_groups, seed, num_starts=2).centres_KD
    squares_NK = (points_ND**2).sum(1)[:, None] + (centres_KD**2).sum(1)[None] - 2 * points_ND @ centres_KD.T
    nearest_N2 = np.sqrt(np.maximum(np.partition(squares_NK, 1, axis=1)[:, :2], 0))
    apart = nearest_N2[:, 1] > 1e-3  # below that float32 holds no difference of squares
    return float(np.where(apart, 1 - nearest_N2[:, 0] / np.maximum(nearest_N2[:, 1], 1e-9), 0).mean())


def _dense(points_ND: Floats, min_size: int) -> Ints:
    try:
        from sklearn.cluster import HDBSCAN
    except ImportError:
        raise MissingExtra("scikit-learn", "cluster", 'cluster="hdbscan"') from None
    if min_size < 2:
        raise InputError(f"HDBSCAN needs min_size of at least 2, not {min_size}.")
    if len(points_ND) < min_size:
        return np.full(len(points_ND), -1, np.int64)  # too few for one group
    return np.asarray(HDBSCAN(min_cluster_size=min_size, copy=True).fit(points_ND).labels_, np.int64)
