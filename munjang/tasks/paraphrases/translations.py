"""Bitext mining: find sentences that translate each other, by margin.    A and B rows, D dimension, K nearest.

A cosine is high for sentences that are near to everything. The margin puts it in proportion: the cosine of a pair
divided by the mean of both sentences' cosines with their K nearest neighbours of the other language (Artetxe and
Schwenk, 2019).
"""

from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.engine.devices import pick_device
from munjang.errors import InputError
from munjang.tasks.paraphrases.mining import Pairs
from munjang.tasks.vectors import unit_vectors
from munjang.types import Floats, Ints
from munjang.vectors.nearest import NO_PAIRS, nearest
from munjang.vectors.similarity import check_same_dimension


def bitext(
    texts: Any,
    others: Any,
    model: BiEncoder | None = None,
    num_neighbours: int = 4,
    min_score: float | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> Pairs:
    """Find pairs of a text and its translation, the surest first; each text is in one pair at most.

    The score is the margin, not a cosine: 1 is no closer than other neighbours; from 1.06 on most are translations.

    Returns Pair records; raises InputError for num_neighbours below 1.

    >>> found = bitext(["A cat sleeps.", "Shares fell."], ["주가가 떨어졌다.", "고양이가 잔다."], num_neighbours=1)
    >>> sorted((pair.first, pair.second) for pair in found)
    [(0, 1), (1, 0)]
    """
    if num_neighbours < 1:
        raise InputError(f"num_neighbours must be at least 1, not {num_neighbours}.")
    a_AD = unit_vectors(texts, model, "texts", progress)
    b_BD = unit_vectors(others, model, "other texts", progress)
    if not len(a_AD) or not len(b_BD):
        return Pairs(np.zeros(0, np.float32), *NO_PAIRS)
    check_same_dimension(a_AD, b_BD)
    where = pick_device(device)
    forth_AK, places_AK = nearest(a_AD, b_BD, num_neighbours, "dot", NO_PAIRS, where, progress)
    back_BK, places_BK = nearest(b_BD, a_AD, num_neighbours, "dot", NO_PAIRS, where, progress)
    around_A, around_B = forth_AK.mean(1), back_BK.mean(1)
    first = np.concatenate([np.repeat(np.arange(len(a_AD)), forth_AK.shape[1]), places_BK.reshape(-1)])
    second = np.concatenate([places_AK.reshape(-1), np.repeat(np.arange(len(b_BD)), back_BK.shape[1])])
    cosines = np.concatenate([forth_AK.reshape(-1), back_BK.reshape(-1)])
    around = (around_A[first] + around_B[second]) / 2
    margins = np.where(around > 0, cosines / np.maximum(around, 1e-6), 0).astype(np.float32)
    return _one_each(first, second, margins, min_score)


def _one_each(first: Ints, second: Ints, margins: Floats, min_score: float | None) -> Pairs:
    """Take the best pair, then the best of texts that are still free, and so on."""
    used_first, used_second, kept = set[int](), set[int](), []
    for place in np.lexsort((second, first, -margins)).tolist():
        if min_score is not None and margins[place] < min_score:
            break
        a, b = int(first[place]), int(second[place])
        if a not in used_first and b not in used_second:
            used_first.add(a)
            used_second.add(b)
            kept.append(place)
    return Pairs(margins[kept], first[kept], second[kept])
