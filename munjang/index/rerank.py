"""Ordering candidates once more with a cross-encoder: to a depth, with a share for the retrieval, within a time."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index.hits import Hit
from munjang.types import Doubles

STRIDE = 32  # candidates of each query between two looks at the clock


@dataclass(frozen=True)
class Reranking:
    """How to order once more.

    `depth`: how many candidates of each query the cross-encoder reads (None: all). `weight`: its share of the final
    order, 1 is all of it; below, scores of both are put on one scale (z-scores over the candidates) and added. None:
    what the cross-encoder's folder states (`CrossEncoder.rerank_weight`), mostly 1. `budget_s`: after so many seconds
    the rest keeps its retrieval order, behind what was read.
    """

    scorer: CrossEncoder
    depth: int | None = None
    weight: float | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 1:
            raise InputError(f"depth must be at least 1, not {self.depth}.")
        if not 0 <= self.share <= 1:
            raise InputError(f"weight is a share, 0 to 1, not {self.share}.")
        if self.scorer.num_labels != 1:
            raise InputError(f"Re-ranking needs one score a pair; this model has {self.scorer.num_labels} labels.")

    @property
    def share(self) -> float:
        """Of the cross-encoder in the final order."""
        return self.scorer.rerank_weight if self.weight is None else self.weight

    def __call__(self, queries: Sequence[str], candidates: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
        """Every query's candidates in their new order. All pairs of all queries are packed together."""
        depth = max(map(len, candidates), default=0) if self.depth is None else self.depth
        started = time.monotonic()
        logits: list[list[float]] = [[] for _ in queries]
        stride = depth if self.budget_s is None else STRIDE
        for start in range(0, depth, max(stride, 1)):
            if self.budget_s is not None and start and time.monotonic() - started >= self.budget_s:
                break
            parts = [[hit.text for hit in hits[start : min(start + stride, depth)]] for hits in candidates]
            ranked = self.scorer.rank_many(list(queries), parts, activation="Identity")
            for found, hits in zip(logits, ranked, strict=True):
                by_place = sorted(hits, key=lambda hit: hit.index)
                found += [hit.score for hit in by_place]
        pairs = zip(candidates, logits, strict=True)
        return [ordered(hits, found, self.scorer.own_scores(found), self.share) for hits, found in pairs]


def ordered(hits: Sequence[Hit], logits: Sequence[float], scores: Sequence[float], share: float) -> list[Hit]:
    """Hits with the cross-encoder's scores in their new order; hits that it has not read follow as they came.

    Scores never contradict the order. Where all of it is the cross-encoder's they are its own. Where the retrieval has
    a share they are those of both, brought to 0..1: they compare the candidates of one query and say nothing more, a
    lone candidate's is 0.5. A hit that was not read has the lowest of those before it: no more is known of it.
    """
    read = [replace(hit, rerank_score=score, score=score) for hit, score in zip(hits, scores, strict=False)]
    if share < 1:
        both = added(np.array(logits), np.array([hit.retrieval_score for hit in read]), share)
        squeezed = (1 + np.tanh(both / 2)) / 2  # the sigmoid, in a form that can't overflow
        read = [replace(hit, score=each) for hit, each in zip(read, squeezed.tolist(), strict=True)]
    order = np.argsort([-hit.score for hit in read], kind="stable")  # what is no number comes last
    numbers = [hit.score for hit in read if not math.isnan(hit.score)]
    rest = [replace(hit, score=min(numbers)) if numbers else hit for hit in hits[len(read) :]]
    return [*(read[at] for at in order), *rest]


def added(logits: Doubles, retrieved: Doubles, share: float) -> Doubles:
    """What one query's candidates are worth to a cross-encoder and a retrieval together: their z-scores, by share.

    Those of the logits: after a sigmoid most candidates are 0, and there is nothing left to add (docs/log.md).
    """
    return share * standard(logits) + (1 - share) * standard(retrieved)


def standard(values: Doubles) -> Doubles:
    """In standard deviations from their mean; what is no number stays as it is."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return values
    spread = finite.std()
    return (values - finite.mean()) / (spread if spread > 0 else 1.0)
