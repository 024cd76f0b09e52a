"""Fusion: the orders of several ways of searching become one.

To add a fusion: a function that gives each row of one order a value, higher is better, and a line in FUSIONS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from munjang.stores.base import Found

RANK_OFFSET = 60  # of reciprocal ranks: the constant of Cormack et al. 2009, which all engines use
ZERO_WAYS = ("words", "sparse")  # what they do not find scores 0: nothing in common with the query


def by_scores(order: Found, num_candidates: int = 0) -> dict[str, float]:
    """Return how many standard deviations a score is above the worst candidate's: how far one is ahead counts.

    What words or sparse vectors did not find among as many candidates as the other ways has 0 there.
    """
    scores = np.array(order.scores)
    all_scores = np.pad(scores, (0, max(num_candidates - len(scores), 0)))
    spread = all_scores.std() if len(scores) else 0.0
    values = (scores - all_scores.min()) / spread if spread > 0 else np.ones(len(scores))
    return dict(zip(order.ids, values.tolist(), strict=True))


def by_ranks(order: Found, num_candidates: int = 0) -> dict[str, float]:
    """Return reciprocal ranks: being high counts, whatever the scores mean."""
    return {id: (RANK_OFFSET + 1) / (RANK_OFFSET + rank) for rank, id in enumerate(order.ids, 1)}


FUSIONS: dict[str, Callable[[Found, int], dict[str, float]]] = {"scores": by_scores, "ranks": by_ranks}


@dataclass(frozen=True)
class Fused:
    """A row that some way found: its place in the order of each, and its score there."""

    id: str
    score: float
    ranks: Mapping[str, int]  # from 1
    scores: Mapping[str, float]


def fuse(
    orders: Mapping[str, Found], weights: Mapping[str, float], fusion: str, document_of: Mapping[str, str]
) -> list[Fused]:
    """Merge the orders of one query; rows without a document (deleted meanwhile) are left out.

    A document counts by its best row of every way, which need not be the same one: its words may stand in one passage
    and its meaning in another. `document_of` with a document for each row fuses rows by themselves. One order alone
    keeps its scores; several have 0 to 1, which is first by every way.

    >>> orders = {"dense": Found(["a", "b"], [0.9, 0.8]), "words": Found(["b", "c"], [7.0, 5.0])}
    >>> [row.id for row in fuse(orders, {"dense": 0.4, "words": 0.6}, "scores", {"a": "A", "b": "B", "c": "C"})]
    ['b', 'a', 'c']
    """
    is_alone = len(orders) == 1
    longest = max((len(order.ids) for order in orders.values()), default=0)
    values_of = {way: FUSIONS[fusion](order, longest if way in ZERO_WAYS else 0) for way, order in orders.items()}
    total = sum(weights[way] * max(values_of[way].values(), default=0.0) for way in orders) or 1.0
    own: dict[str, float] = {}
    of_document: dict[str, dict[str, float]] = {}
    ranks: dict[str, dict[str, int]] = {}
    scores: dict[str, dict[str, float]] = {}
    for way, order in orders.items():
        for rank, (id, score) in enumerate(zip(order.ids, order.scores, strict=True), 1):
            if id in document_of:
                value = score if is_alone else values_of[way][id] * weights[way] / total
                own[id] = own.get(id, 0.0) + value
                best = of_document.setdefault(document_of[id], {})
                best[way] = max(best.get(way, value), value)
                ranks.setdefault(id, {})[way], scores.setdefault(id, {})[way] = rank, score
    sums = {document: sum(best.values()) for document, best in of_document.items()}
    order_of_rows = sorted(own, key=lambda id: (-sums[document_of[id]], -own[id], id))
    return [Fused(id, sums[document_of[id]], ranks[id], scores[id]) for id in order_of_rows]
