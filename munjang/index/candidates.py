"""Candidates: passages that a search retrieved, before it is finished; and how several orders become one."""

from collections.abc import Sequence
from dataclasses import dataclass

from munjang.stores.base import Found
from munjang.types import Hit

RANK_OFFSET = 60  # of reciprocal ranks: the constant of Cormack et al. 2009, which all engines use


@dataclass(frozen=True)
class Candidates:
    """The result of `Index.retrieve`, which `Index.finish` takes: the hits of each query and what was asked for."""

    hits: list[list[Hit]]
    queries: list[str] | None  # None: vectors were given
    is_single: bool  # one query, not a list
    k: int
    group: str


def fuse(orders: Sequence[Found], k: int) -> Found:
    """Merge orders by reciprocal rank: being high in any of them counts, whatever its scores mean.

    >>> fuse([Found(["a", "b"], [0.9, 0.8]), Found(["b", "c"], [7.0, 5.0])], 3).ids
    ['b', 'a', 'c']
    """
    sums: dict[str, float] = {}
    for order in orders:
        for rank, id in enumerate(order.ids, 1):
            sums[id] = sums.get(id, 0.0) + 1 / (RANK_OFFSET + rank)
    best = sorted(sums, key=lambda id: (-sums[id], id))[:k]
    return Found(best, [sums[id] for id in best])


def one_per_document(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the best passage of every document, in order."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.document_id, hit)
    return list(best.values())
