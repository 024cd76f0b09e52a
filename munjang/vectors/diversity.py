"""Diverse picks: candidates that are close to a target and unlike each other.    C candidates, D dimension, K picks.

The first of equals wins, as in KeyBERT.
"""

from functools import lru_cache
from itertools import chain, combinations
from math import comb

import numpy as np

from munjang.errors import InputError
from munjang.types import Floats, Ints
from munjang.vectors.nearest import top_k

MAX_COMBINATIONS = 3_000_000  # that max-sum compares: 24 MB for each number of a combination
MIN_VOLUME = 1e-9  # spanned by the picks: below it nothing new can be added


def marginal(scores_C: Floats, units_CD: Floats, top: int, diversity: float) -> Ints:
    """Pick by maximal marginal relevance (Carbonell and Goldstein, 1998): close, and unlike earlier picks."""
    _check(diversity)
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
    """Pick by max-sum distance: of the `num_candidates` best, the `top` that are least like each other.

    With fewer candidates than `top` it picks all of them (KeyBERT none).
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


def determinantal(scores_C: Floats, units_CD: Floats, top: int, diversity: float) -> Ints:
    """Pick greedily by a determinantal point process: by score, and by the log of the volume that all picks span.

    Maximal marginal relevance looks at the nearest pick alone; here all count. Each pick costs C times K (Chen, Zhang
    and Zhou 2018, "Fast Greedy MAP Inference for Determinantal Point Process").
    """
    _check(diversity)
    num_picks = min(top, len(scores_C))
    rows_KC = np.zeros((num_picks, len(scores_C)))  # of the Cholesky factor, for every candidate
    left_C = np.ones(len(scores_C))  # squared height of each candidate over what is spanned
    is_open_C = np.ones(len(scores_C), bool)
    picks: list[int] = []
    while len(picks) < num_picks:
        worth_C = (1 - diversity) * scores_C + diversity * np.log(np.maximum(left_C, MIN_VOLUME)) if picks else scores_C
        pick = int(np.argmax(np.where(is_open_C, worth_C, -np.inf)))
        alike_C = (1 + units_CD @ units_CD[pick]) / 2  # 0 for opposites, so that the kernel is one
        if left_C[pick] > MIN_VOLUME:
            row_C = (alike_C - rows_KC[: len(picks)].T @ rows_KC[: len(picks), pick]) / np.sqrt(left_C[pick])
            rows_KC[len(picks)] = row_C
            left_C = np.maximum(left_C - row_C**2, 0)
        is_open_C[pick] = False
        picks.append(pick)
    return np.array(picks, np.int64)


def _check(diversity: float) -> None:
    if not 0 <= diversity <= 1:
        raise InputError(f"diversity must be between 0 (nearest only) and 1 (unlike each other), not {diversity}.")


@lru_cache(maxsize=2)
def _combinations(count: int, top: int) -> Ints:
    flat = np.fromiter(chain.from_iterable(combinations(range(count), top)), np.int64, comb(count, top) * top)
    return flat.reshape(-1, top)
