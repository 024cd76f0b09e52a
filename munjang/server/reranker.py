"""Reranker: a cross-encoder as the batcher needs it, a query with texts to work and work to logits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index.rerank import Reranking
from munjang.server.errors import Refused
from munjang.server.lane import Part, Work


class Reranker:
    """A cross-encoder under its name here; its work is pairs."""

    def __init__(self, name: str, scorer: CrossEncoder) -> None:
        if scorer.num_labels != 1:
            raise InputError(f"{name} has {scorer.num_labels} labels; a re-ranker gives one score a pair.")
        self.name, self.scorer = name, scorer
        self.reranking = Reranking(scorer)  # here, so that a bad weight in its folder is refused at the start

    @property
    def num_at_once(self) -> int:
        """Batches that are computed best side by side: one a core."""
        return self.scorer._engine.executor.num_workers

    def prepare(self, query: str, texts: Sequence[str], truncate: bool = True) -> Work:
        """A query with each text, as work."""
        tokenizer = self.scorer.tokenizer
        _, lengths = tokenizer.bodies([query, *texts])
        tokens = lengths[1:] + lengths[0] + tokenizer.pair.num_special
        limit = self.scorer.max_length
        if limit is not None:
            if not truncate and (tokens > limit).any():
                row = int(np.argmax(tokens > limit))
                raise Refused(
                    "too_large", f"Query and text {row} have {tokens[row]} tokens; {self.name} reads {limit}."
                )
            tokens = np.minimum(tokens, limit)
        return Work([(query, text) for text in texts], tokens.tolist())

    def compute(self, parts: Sequence[Part]) -> list[Sequence[Any]]:
        """Logits of a batch of pairs."""
        pairs = [pair for part in parts for pair in part.units]
        scores = self.scorer.predict(pairs, activation="Identity", progress=False)
        if not np.isfinite(scores).all():  # JSON has no such numbers
            raise Refused("model", f"{self.name} gave scores that are no numbers; its weights may be damaged.")
        results, start = [], 0
        for part in parts:
            results.append(scores[start : start + len(part.units)].tolist())
            start += len(part.units)
        return results


def sigmoid(logits: Sequence[float]) -> list[float]:
    """Logits as scores between 0 and 1."""
    values = np.asarray(logits, np.float64)
    found: list[float] = (0.5 * (1 + np.tanh(values / 2))).tolist()  # this form can't overflow
    return found
