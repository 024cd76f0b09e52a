"""Re-ranking candidates with a cross-encoder or a late-interaction model: to a depth, weighted, within a budget."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from munjang import checkpoint
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index.candidates import RetrieveOptions
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.types import Doubles, Hit

CLOCK_STRIDE = 32  # candidates of each query between two looks at the clock


class SearchOptions(RetrieveOptions, total=False):
    """Options of `Index.search` beside how many hits and which."""

    rerank: "CrossEncoder | MultiVectorEncoder | Reranking | str | None"


@dataclass(frozen=True)
class Reranking:
    """A cross-encoder, or a late-interaction model, and how to order with it.

    `depth`: how many candidates of each query it reads (None: all). `weight`: its weight in the final order; below 1,
    both scores become z-scores over the candidates and their weighted sum decides. None: what the cross-encoder's
    folder states (`CrossEncoder.rerank_weight`), mostly 1. `budget_s`: candidates that were not read after so many
    seconds keep their retrieval order, behind those that were.
    """

    scorer: CrossEncoder | MultiVectorEncoder
    depth: int | None = None
    weight: float | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 1:
            raise InputError(f"depth must be at least 1, not {self.depth}.")
        if not 0 <= self.scorer_weight <= 1:
            raise InputError(f"weight must be a number from 0 to 1, not {self.scorer_weight}.")
        if isinstance(self.scorer, CrossEncoder) and self.scorer.num_labels != 1:
            raise InputError(f"Re-ranking needs one score a pair; this model has {self.scorer.num_labels} labels.")

    @property
    def scorer_weight(self) -> float:
        """Return the cross-encoder's weight in the final order: as given, else as its folder states."""
        own = self.scorer.rerank_weight if isinstance(self.scorer, CrossEncoder) else 1.0
        return own if self.weight is None else self.weight

    def score(self, queries: Sequence[str], candidates: Sequence[Sequence[Hit]]) -> list[list[float]]:
        """Return the logits of each query's candidates, in their order; fewer than candidates where time ran out.

        The pairs of all queries are packed together. A late-interaction model's logits are its scores.
        """
        depth = max(map(len, candidates), default=0) if self.depth is None else self.depth
        started_s = time.monotonic()
        logits: list[list[float]] = [[] for _ in queries]
        stride = depth if self.budget_s is None else CLOCK_STRIDE
        for start in range(0, depth, max(stride, 1)):
            if self.budget_s is not None and start and time.monotonic() - started_s >= self.budget_s:
                break
            read = [hits[start : min(start + stride, depth)] for hits in candidates]
            for row, scores in zip(logits, self._scores(queries, read), strict=True):
                row += scores
        return logits

    def _scores(self, queries: Sequence[str], read: Sequence[Sequence[Hit]]) -> list[list[float]]:
        if isinstance(self.scorer, MultiVectorEncoder):
            asked = self.scorer.encode_query(list(queries), progress=False)
            tokens = iter(self.scorer.encode_document([hit.text for hits in read for hit in hits], progress=False))
            rows = zip(asked, read, strict=True)
            return [
                self.scorer.similarity([query_TD], [next(tokens) for _ in hits])[0].tolist() if hits else []
                for query_TD, hits in rows
            ]
        pairs = [(query, hit.text) for query, hits in zip(queries, read, strict=True) for hit in hits]
        scores = iter(self.scorer.predict(pairs, activation="Identity").tolist())
        return [[next(scores) for _ in hits] for hits in read]

    def order(self, hits: Sequence[Hit], logits: Sequence[float]) -> list[Hit]:
        """Return one query's candidates in their final order, by the logits of the first of them."""
        scores = self.scorer.own_scores(logits) if isinstance(self.scorer, CrossEncoder) else list(logits)
        return ordered(hits, logits, scores, self.scorer_weight)


def reranking_of(given: Any) -> Reranking | None:
    """Return the re-ranking that a search asks for: a model, its folder or Hub name, or how to order with one."""
    given = load_scorer(given) if isinstance(given, str) else given
    return given if given is None or isinstance(given, Reranking) else Reranking(given)


def load_scorer(name: str, device: str | None = None, dtype: str | None = None) -> CrossEncoder | MultiVectorEncoder:
    """Load what re-ranks from a folder or by its Hub name: a cross-encoder, unless it states late interaction."""
    is_late = checkpoint.kind(name) == "late"
    return (MultiVectorEncoder if is_late else CrossEncoder).load(name, device=device, dtype=dtype)


def ordered(hits: Sequence[Hit], logits: Sequence[float], scores: Sequence[float], weight: float) -> list[Hit]:
    """Sort hits by the cross-encoder's scores; hits that it has not read follow in the order they came.

    Scores never contradict the order. With weight 1 they are the cross-encoder's own. Below, they are the combined
    ones brought to 0..1: they compare the candidates of one query and say nothing more, a lone candidate's is 0.5. A
    hit that was not read gets the lowest score of those before it: no more is known of it.
    """
    read = [replace(hit, rerank_score=score, score=score) for hit, score in zip(hits, scores, strict=False)]
    if weight < 1:
        retrieved = np.array([hit.retrieval_score for hit in read], np.float64)
        combined = added(np.array(logits), retrieved, weight)
        squeezed = (1 + np.tanh(combined / 2)) / 2  # the sigmoid, in a form that can't overflow
        read = [replace(hit, score=score) for hit, score in zip(read, squeezed.tolist(), strict=True)]
    order = np.argsort([-hit.score for hit in read], kind="stable")  # NaN comes last
    numbers = [hit.score for hit in read if not math.isnan(hit.score)]
    unread = [replace(hit, score=min(numbers)) if numbers else hit for hit in hits[len(read) :]]
    return [*(read[at] for at in order), *unread]


def added(logits: Doubles, retrieved: Doubles, weight: float) -> Doubles:
    """Combine the scores of one query's candidates: the weighted sum of the z-scores of logits and retrieval.

    Logits, as after a sigmoid most candidates are 0 and nothing is left to add (docs/log.md).
    """
    return weight * standard(logits) + (1 - weight) * standard(retrieved)


def standard(values: Doubles) -> Doubles:
    """Return z-scores: standard deviations from the mean of the finite values; NaN stays NaN."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return values
    spread = finite.std()
    return (values - finite.mean()) / (spread if spread > 0 else 1.0)
