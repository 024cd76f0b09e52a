"""Pearson and Spearman correlation.    N rows."""

import numpy as np
from numpy.typing import ArrayLike

from munjang.errors import InputError
from munjang.types import Doubles, Ints


def pearson(first_N: ArrayLike, second_N: ArrayLike) -> float:
    """Return the linear correlation, -1 to 1; NaN where it is undefined: fewer than two rows, or one side constant.

    >>> pearson([1, 2, 3], [2, 4, 6])
    1.0
    """
    first, second = _both(first_N, second_N)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    # scaled before squaring: tiny or huge values would vanish or overflow
    first, second = first - first.mean(), second - second.mean()
    first, second = first / np.abs(first).max(), second / np.abs(second).max()
    found = (first @ second) / np.sqrt((first @ first) * (second @ second))
    return float(np.clip(found, -1, 1))


def spearman(first_N: ArrayLike, second_N: ArrayLike) -> float:
    """Return the Pearson correlation of the ranks; equal values share the mean of their ranks."""
    first, second = _both(first_N, second_N)
    return pearson(ranks(first), ranks(second))


def ranks(values_N: ArrayLike) -> Doubles:
    """Rank values from 1, lowest first; equal values share the mean of their ranks.

    >>> ranks([10, 30, 30, 20]).tolist()
    [1.0, 3.5, 3.5, 2.0]
    """
    group_N = rank_groups(np.asarray(values_N, np.float64))
    sizes = np.bincount(group_N)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[group_N], np.float64)


def rank_groups(values_N: Doubles) -> Ints:
    """Number the distinct values from 0, lowest first; return the number of each row's."""
    return np.asarray(np.unique(values_N, return_inverse=True)[1], np.int64)


def _both(first_N: ArrayLike, second_N: ArrayLike) -> tuple[Doubles, Doubles]:
    first, second = np.asarray(first_N, np.float64), np.asarray(second_N, np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(f"A correlation needs two rows of equal length, not {first.shape} and {second.shape}.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("A correlation needs finite numbers; there is NaN or infinity among them.")
    return first, second
