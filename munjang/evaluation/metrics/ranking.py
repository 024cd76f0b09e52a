"""Metrics of rankings, with trec_eval's definitions.

A query's ranking is the list of gains: the relevance of each document in order, 0 where nothing is known of it.
`judged` holds the relevances of all documents that were judged for the query, found or not; above 0 is relevant.

Documents with equal scores are ordered by their id, the greatest first, and scores are compared in float32: both as
trec_eval does it, so that the same run gives the same figures there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from munjang.errors import InputError

Gains: TypeAlias = Sequence[float]
Relevances: TypeAlias = Mapping[str, Mapping[str, float]]  # of documents, by query and document id
Run: TypeAlias = Mapping[str, Mapping[str, float]]  # scores of documents, by query and document id


def ndcg(gains: Gains, judged: Gains, k: int) -> float:
    """Return normalised discounted cumulative gain: the gain is the relevance itself, the discount log2(1 + rank).

    >>> round(ndcg([0, 1], [1], 10), 4)
    0.6309
    """
    ideal = sorted((gain for gain in judged if gain > 0), reverse=True)
    best = _discounted(ideal[:k])
    return _discounted([max(gain, 0) for gain in gains[:k]]) / best if best else 0.0


def average_precision(gains: Gains, judged: Gains, k: int) -> float:
    """Average precision at each relevant document among the first k over all relevant ones, found or not."""
    num_relevant, found, total = _num_relevant(judged), 0, 0.0
    for rank, gain in enumerate(gains[:k], 1):
        if gain > 0:
            found += 1
            total += found / rank
    return total / num_relevant if num_relevant else 0.0


def reciprocal_rank(gains: Gains, judged: Gains, k: int) -> float:
    """Return one over the rank of the first relevant document, 0 where none is among the first k."""
    return next((1 / rank for rank, gain in enumerate(gains[:k], 1) if gain > 0), 0.0)


def recall(gains: Gains, judged: Gains, k: int) -> float:
    """Return the fraction of the relevant documents that is among the first k."""
    num_relevant = _num_relevant(judged)
    return _num_relevant(gains[:k]) / num_relevant if num_relevant else 0.0


def precision(gains: Gains, judged: Gains, k: int) -> float:
    """Return the fraction of the first k that is relevant; a shorter ranking is filled up with irrelevant ones."""
    return _num_relevant(gains[:k]) / k


MEASURES: dict[str, Callable[[Gains, Gains, int], float]] = {
    "ndcg": ndcg,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "recall": recall,
    "precision": precision,
}


def r_precision(gains: Gains, judged: Gains) -> float:
    """Return precision at R, the number of relevant documents."""
    num_relevant = _num_relevant(judged)
    return precision(gains, judged, num_relevant) if num_relevant else 0.0


def order(scores: Mapping[str, float]) -> list[str]:
    """Order document ids, best first; equal scores by id, the greatest first."""
    by_id = sorted(scores, key=_as_bytes, reverse=True)
    return sorted(by_id, key=lambda name: -np.float32(scores[name]))  # stable


def gains_of(relevances: Mapping[str, float], scores: Mapping[str, float]) -> list[float]:
    """Return the relevance of each ranked document, best score first."""
    return [float(relevances.get(name, 0)) for name in order(scores)]


def rank_metrics(
    relevances: Relevances, run: Run, at: Sequence[int] = (1, 3, 5, 10, 100), measures: Sequence[str] = tuple(MEASURES)
) -> dict[str, float]:
    """Average metrics, as `ndcg@10`, over queries with relevant documents; one without a ranking counts as 0.

    >>> rank_metrics({"q": {"a": 1}}, {"q": {"a": 0.2, "b": 0.9}}, at=[1, 2], measures=["recall"])
    {'recall@1': 0.0, 'recall@2': 1.0}
    """
    rows = rank_rows(relevances, run, at, measures)
    return {name: float(np.mean(values)) for name, values in rows.items()}


def rank_rows(
    relevances: Relevances, run: Run, at: Sequence[int], measures: Sequence[str] = tuple(MEASURES)
) -> dict[str, list[float]]:
    """Measure the ranking of each query with relevant documents."""
    if not at or min(at) < 1:
        raise InputError(f"A ranking is cut after 1 document or more, not after {list(at)}.")
    answerable = [query for query, judged in relevances.items() if _num_relevant(list(judged.values()))]
    if not answerable:
        raise InputError("No query has a relevant document: nothing to measure a ranking by.")
    rows = [(gains_of(relevances[each], run.get(each, {})), list(relevances[each].values())) for each in answerable]
    return {
        f"{measure}@{k}": [MEASURES[measure](gains, judged, k) for gains, judged in rows]
        for measure in measures
        for k in at
    }


def _discounted(gains: Gains) -> float:
    return float(np.sum(np.asarray(gains, np.float64) / np.log2(np.arange(2, len(gains) + 2))))


def _num_relevant(gains: Gains) -> int:
    return sum(gain > 0 for gain in gains)


def _as_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")  # trec_eval compares bytes
