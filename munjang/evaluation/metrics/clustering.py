"""Metrics of how well clusters agree with classes.    N rows, C classes, K clusters."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import InputError
from munjang.types import Doubles


@dataclass(frozen=True)
class Agreement:
    """1 is best, 0 is none."""

    homogeneity: float  # each cluster holds one class only
    completeness: float  # each class lies in one cluster only
    v_measure: float  # their harmonic mean


def agreement(labels_N: ArrayLike, clusters_N: ArrayLike) -> Agreement:
    """Compute homogeneity, completeness and V-measure (Rosenberg and Hirschberg, 2007).

    >>> agreement([0, 0, 1, 1], [1, 1, 0, 0]).v_measure
    1.0
    """
    labels, clusters = np.asarray(labels_N), np.asarray(clusters_N)
    if labels.ndim != 1 or labels.shape != clusters.shape or not len(labels):
        raise InputError(f"As many classes as clusters are needed, one or more, not {labels.shape}, {clusters.shape}.")
    _, label_N = np.unique(labels, return_inverse=True)
    _, cluster_N = np.unique(clusters, return_inverse=True)
    pairs, counts = np.unique(np.stack([label_N, cluster_N]), axis=1, return_counts=True)
    of_labels, of_clusters = np.bincount(label_N), np.bincount(cluster_N)
    shared = counts / len(labels)
    expected = of_labels[pairs[0]] * of_clusters[pairs[1]] / len(labels) ** 2
    information = max(float(np.sum(shared * np.log(shared / expected))), 0.0)
    homogeneity = _share(information, _entropy(of_labels / len(labels)))
    completeness = _share(information, _entropy(of_clusters / len(labels)))
    both = homogeneity + completeness
    return Agreement(homogeneity, completeness, 2 * homogeneity * completeness / both if both else 0.0)


def _share(information: float, entropy: float) -> float:
    return min(information / entropy, 1.0) if entropy else 1.0  # one class alone can't be mixed


def _entropy(fractions: Doubles) -> float:
    return float(-np.sum(fractions * np.log(fractions))) if len(fractions) > 1 else 0.0
