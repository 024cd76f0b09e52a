"""Merge the token vectors of a text to fewer: Ward's clusters by cosine, each as its mean.

T tokens, K tokens afterwards, D dimension.
"""

import numpy as np

from munjang.errors import InputError, MissingExtra
from munjang.types import Floats


def pool_tokens(vectors_TD: Floats, factor: float, num_protected: int = 1, is_normalized: bool = True) -> Floats:
    """Keep one in `factor` unit token vectors [K, D]; the first `num_protected` (the CLS token) stay as they are.

    >>> pool_tokens(np.array([[1, 0], [0, 1], [0, 1], [1, 0]], np.float32), 2).shape
    (2, 2)
    """
    if not 1 <= factor < float("inf"):
        raise InputError(f"pool_factor should be a number of at least 1, not {factor}.")
    protected, rest = vectors_TD[:num_protected], vectors_TD[num_protected:]
    num_kept = max(int(len(rest) // factor), 1)
    if num_kept < len(rest):
        vectors_TD = np.concatenate([protected, _means(rest, num_kept)])
    if is_normalized:
        vectors_TD = vectors_TD / np.maximum(np.linalg.norm(vectors_TD, axis=1, keepdims=True), 1e-12)
    return vectors_TD


def _means(vectors_TD: Floats, num_clusters: int) -> Floats:
    try:
        from scipy.cluster.hierarchy import fcluster, linkage
        from scipy.spatial.distance import squareform
    except ImportError as error:
        raise MissingExtra("scipy", "cluster", "pool_factor=") from error
    distances = np.clip(1 - vectors_TD @ vectors_TD.T, 0, 2)
    tree = linkage(squareform(distances, checks=False), method="ward")
    _, cluster_of_T = np.unique(fcluster(tree, num_clusters, "maxclust"), return_inverse=True)
    sums = np.zeros((int(cluster_of_T.max()) + 1, vectors_TD.shape[1]), np.float64)
    np.add.at(sums, cluster_of_T, vectors_TD)
    return (sums / np.bincount(cluster_of_T)[:, None]).astype(np.float32)
