"""Reranker: a cross-encoder as the batcher needs it, a query with texts to payload to logits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index.rerank import Reranking
from munjang.server.errors import Refused
from munjang.server.model_queue import Payload, Slice


class Reranker:
    """A cross-encoder under its name here; its units are pairs."""

    def __init__(self, name: str, scorer: CrossEncoder) -> None:
        if scorer.num_labels != 1:
            raise InputError(f"{name} has {scorer.num_labels} labels; a re-ranker gives one score a pair.")
        self.name, self.scorer = name, scorer
        self.reranking = Reranking(scorer)  # here, so that a bad weight in its folder is refused at the start

    @property
    def num_at_once(self) -> int:
        """Return how many batches are best computed side by side: one a core."""
        return self.scorer._engine.executor.num_workers

    def prepare(self, query: str, texts: Sequence[str], truncate: bool = True) -> Payload:
        """Count the tokens of a query with each text."""
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
        return Payload([(query, text) for text in texts], tokens.tolist())

    def compute(self, batch: Sequence[Slice]) -> list[Sequence[Any]]:
        """Compute the logits of a batch of pairs."""
        pairs = [pair for part in batch for pair in part.units]
        scores = self.scorer.predict(pairs, activation="Identity", progress=False)
        if not np.isfinite(scores).all():  # JSON has no such numbers
            raise Refused("model", f"{self.name} gave scores that are not finite; its weights may be damaged.")
        results, start = [], 0
        for part in batch:
            results.append(scores[start : start + len(part.units)].tolist())
            start += len(part.units)
        return results


def sigmoid(logits: Sequence[float]) -> list[float]:
    """Convert logits to scores between 0 and 1."""
    values = np.asarray(logits, np.float64)
    scores: list[float] = (0.5 * (1 + np.tanh(values / 2))).tolist()  # this form can't overflow
    return scores
