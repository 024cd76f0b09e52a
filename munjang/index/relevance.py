"""Relevance: the probability that a hit answers its query, fitted to judged queries and kept with the index.

Logistic regression of a few features of a hit. A scale belongs to the models that gave the features: the index's own,
and the re-ranker's where one orders the hits.    N hits, F features.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from munjang.errors import InputError
from munjang.index.rerank import Reranking
from munjang.text.highlights import Highlighter
from munjang.types import Doubles, Hit
from munjang.vectors.logistic import fit

MIN_JUDGED_HITS = 20  # of either kind: fewer say nothing about probabilities
COST = 100.0  # of errors against large weights: features are few and small
NOT_CALIBRATED = "This index has no calibrated relevance for these models; call Index.calibrate with judged queries."


@dataclass(frozen=True)
class Scale:
    """The weights of similarity, of the part of the query's words that a text has, and of a re-ranker's score."""

    weights: tuple[float, ...]
    bias: float

    @classmethod
    def fitted(cls, features_NF: Doubles, is_relevant: Sequence[bool]) -> "Scale":
        """Fit to hits with features and judgements."""
        num_relevant = sum(is_relevant)
        if min(num_relevant, len(is_relevant) - num_relevant) < MIN_JUDGED_HITS:
            raise InputError(
                f"Calibrating needs at least {MIN_JUDGED_HITS} relevant hits and as many others; the searches gave "
                f"{num_relevant} and {len(is_relevant) - num_relevant}. Give more queries."
            )
        found = fit(features_NF, np.array(is_relevant, np.int64), COST, max_rounds=500)
        return cls(tuple(found.weights_CD[0].tolist()), float(found.bias_C[0]))

    def __call__(self, features_NF: Doubles) -> Doubles:
        """Return probabilities."""
        logits = features_NF @ np.array(self.weights) + self.bias
        return (1 + np.tanh(logits / 2)) / 2  # the sigmoid, in a form that can't overflow


def features_of(hits: Sequence[Hit], words: Highlighter) -> Doubles:
    """Return the features of one query's hits. What vectors did not find is as similar as the last that they did."""
    similarities = [hit.scores["dense"] for hit in hits if "dense" in hit.scores]
    lowest = min(similarities, default=0.0)
    rows = [[hit.scores.get("dense", lowest), words.coverage(hit.text)] for hit in hits]
    reranked = [hit.rerank_score for hit in hits if hit.rerank_score is not None]
    if reranked:
        unread = min(reranked)
        rows = [
            [*row, unread if hit.rerank_score is None else hit.rerank_score]
            for row, hit in zip(rows, hits, strict=True)
        ]
    return np.array(rows, np.float64).reshape(len(hits), -1)


def fitted(rows: Sequence[Sequence[Hit]], queries: Sequence[str], relevant: Sequence[Collection[str]]) -> Scale:
    """Fit a scale to the hits of judged queries."""
    features = [features_of(hits, Highlighter(query)) for hits, query in zip(rows, queries, strict=True) if hits]
    judged = [hit.document_id in ids for hits, ids in zip(rows, relevant, strict=True) for hit in hits]
    return Scale.fitted(np.concatenate(features) if features else np.zeros((0, 2)), judged)


def key_of(reranking: Reranking | None) -> str:
    """Return the name of a scale: by the re-ranker, or nothing without one."""
    return "" if reranking is None else reranking.scorer.fingerprint


def scale_of(facts: Mapping[str, Any], reranking: Reranking | None) -> Scale | None:
    """Return the scale that an index keeps for these models, if there is one."""
    known = facts.get("relevance", {}).get(key_of(reranking))
    return None if known is None else Scale(tuple(known["weights"]), known["bias"])


def with_relevance(hits: Sequence[Hit], words: Highlighter, scale: Scale) -> list[Hit]:
    """Give hits their relevance."""
    if not hits:
        return []
    return [
        replace(hit, relevance=value) for hit, value in zip(hits, scale(features_of(hits, words)).tolist(), strict=True)
    ]
