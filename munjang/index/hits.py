"""What a search finds, and how several orders become one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from munjang.stores.base import Found, Value

RANK_OFFSET = 60  # of reciprocal ranks: the constant of Cormack et al. 2009, which all engines use


@dataclass(frozen=True)
class Hit:
    """One passage. `score` is what the order goes by: the retrieval's, or that of a re-ranker or of both together."""

    id: str
    document_id: str
    text: str
    start: int  # of the passage in its document
    end: int
    metadata: Mapping[str, Value]
    score: float
    retrieval_score: float
    retrieval_rank: int  # from 1
    rerank_score: float | None = None


def fuse(orders: Sequence[Found], k: int) -> Found:
    """Several orders as one by reciprocal rank: being high in any of them counts, whatever its scores mean.

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
    """The best passage of every document, in order."""
    seen: dict[str, Hit] = {}
    for hit in hits:
        seen.setdefault(hit.document_id, hit)
    return list(seen.values())
