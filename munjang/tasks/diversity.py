"""Picks that are near to something and yet not all alike.    C candidates, D width, K picks.

Pure functions of similarities; the first of equals wins, as in KeyBERT.
"""

from functools import lru_cache
from itertools import chain, combinations
from math import comb

import numpy as np

from munjang.errors import InputError
from munjang.types import Floats, Ints
from munjang.vectors.nearest import top_k

MAX_COMBINATIONS = 3_000_000  # that max-sum compares: 24 MB for each number of a combination


def marginal(scores_C: Floats, units_CD: Floats, top: int, diversity: float) -> Ints:
    """Maximal marginal relevance (Carbonell and Goldstein, 1998): each pick is near, and unlike those before it."""
    if not 0 <= diversity <= 1:
        raise InputError(f"diversity must be between 0 (nearest only) and 1 (unlike each other), not {diversity}.")
    if not len(scores_C):
        return np.zeros(0, np.int64)
    picks = [int(np.argmax(scores_C))]
    closest_C = units_CD @ units_CD[picks[0]]  # to any pick so far
    for _ in range(min(top, len(scores_C)) - 1):
        worth_C = (1 - diversity) * scores_C - diversity * closest_C
        worth_C[picks] = -np.inf
        picks.append(int(np.argmax(worth_C)))
        closest_C = np.maximum(closest_C, units_CD @ units_CD[picks[-1]])
    return np.array(picks[:top], np.int64)


def max_sum(scores_C: Floats, units_CD: Floats, top: int, num_candidates: int) -> Ints:
    """Max-sum distance: of the `num_candidates` best, the `top` that are least like each other.

    With fewer candidates than `top` all of them (KeyBERT gives none then).
    """
    if num_candidates < top:
        raise InputError(f"max-sum picks {top} of num_candidates={num_candidates}; let num_candidates be larger.")
    best = top_k(scores_C, num_candidates)[::-1]  # KeyBERT's order, which decides between equals
    if len(best) <= top:
        return best[::-1]
    if comb(len(best), top) > MAX_COMBINATIONS:
        raise InputError(
            f"max-sum would compare {comb(len(best), top):,} combinations of {top} out of {len(best)} candidates; "
            "take fewer, or use mmr, which does not grow so."
        )
    alike = units_CD[best] @ units_CD[best].T
    chosen_XK = _combinations(len(best), top)
    sums_X = np.zeros(len(chosen_XK), np.float32)
    for first, second in combinations(range(top), 2):
        sums_X += alike[chosen_XK[:, first], chosen_XK[:, second]]
    return best[chosen_XK[int(np.argmin(sums_X))]][::-1]


@lru_cache(maxsize=2)
def _combinations(count: int, top: int) -> Ints:
    flat = np.fromiter(chain.from_iterable(combinations(range(count), top)), np.int64, comb(count, top) * top)
    return flat.reshape(-1, top)
