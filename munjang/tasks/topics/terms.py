"""The texts of each topic, and its terms unlike each other.

T topics, C terms, D width.
"""

from collections.abc import Sequence

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.tasks.diversity import marginal
from munjang.tasks.terms_of_groups import Terms
from munjang.types import Floats, Ints
from munjang.vectors.similarity import unit


def split(texts: Sequence[str], topic_of_N: Ints, num_topics: int) -> list[list[str]]:
    """The texts of each topic; those of none (-1) are left out."""
    groups: list[list[str]] = [[] for _ in range(num_topics)]
    for text, topic in zip(texts, topic_of_N.tolist(), strict=True):
        if topic >= 0:
            groups[topic].append(text)
    return groups


def diversify(terms: Sequence[Terms], centres_TD: Floats, model: BiEncoder, top: int, diversity: float) -> list[Terms]:
    """Of each topic's terms those that are near it and unlike each other (maximal marginal relevance)."""
    distinct = sorted({term for row in terms for term, _ in row})
    if not distinct:
        return list(terms)
    vectors_CD = unit(model.encode(distinct, progress=False))
    place = {term: number for number, term in enumerate(distinct)}
    picked = []
    for row, centre_D in zip(terms, centres_TD, strict=True):
        units = vectors_CD[[place[term] for term, _ in row]] if row else np.zeros((0, len(centre_D)), np.float32)
        picks = marginal(units @ centre_D, units, top, diversity)
        picked.append(tuple(row[pick] for pick in sorted(picks.tolist())))  # the heaviest first
    return picked
