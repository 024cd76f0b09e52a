"""Picks that span much: the greedy maximum of a determinantal point process.    C candidates, D width, K picks.

Chen, Zhang and Zhou 2018, "Fast Greedy MAP Inference for Determinantal Point Process": each pick costs C times K.
"""

import numpy as np

from munjang.errors import InputError
from munjang.types import Floats, Ints

EMPTY = 1e-9  # a volume that nothing new can be added to


def determinantal(scores_C: Floats, units_CD: Floats, top: int, diversity: float) -> Ints:
    """Each next pick adds the most of (1 - diversity) · score + diversity · log of the volume that the picks span.

    Unlike maximal marginal relevance, which looks at the nearest pick alone, all picks count together.
    """
    if not 0 <= diversity <= 1:
        raise InputError(f"diversity must be between 0 (nearest only) and 1 (unlike each other), not {diversity}.")
    number = min(top, len(scores_C))
    rows_KC = np.zeros((number, len(scores_C)))  # of the Cholesky factor, for every candidate
    left_C = np.ones(len(scores_C))  # squared height of each candidate over what is spanned
    is_open_C = np.ones(len(scores_C), bool)
    picks: list[int] = []
    while len(picks) < number:
        worth_C = (1 - diversity) * scores_C + diversity * np.log(np.maximum(left_C, EMPTY)) if picks else scores_C
        pick = int(np.argmax(np.where(is_open_C, worth_C, -np.inf)))
        alike_C = (1 + units_CD @ units_CD[pick]) / 2  # 0 for opposites, so that the kernel is one
        if left_C[pick] > EMPTY:
            row_C = (alike_C - rows_KC[: len(picks)].T @ rows_KC[: len(picks), pick]) / np.sqrt(left_C[pick])
            rows_KC[len(picks)] = row_C
            left_C = np.maximum(left_C - row_C**2, 0)
        is_open_C[pick] = False
        picks.append(pick)
    return np.array(picks, np.int64)
