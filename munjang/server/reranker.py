"""Reranker: a cross-encoder as the batcher needs it, a query with texts to payload to logits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index.rerank import Reranking
from munjang.server.errors import Refused
from munjang.server.model_queue import Payload, Slice
from munjang.server.steps import Steps, pieces
from munjang.text.tokenizer import longest_first
from munjang.text.trim import trimmed
from munjang.types import Ints


@dataclass(frozen=True)
class Scoring:
    """The way a request wants long texts to be read."""

    truncate: bool = True  # False: a pair that is too long is an error
    keeps_end: bool = False  # of what is too long
    max_tokens: int | None = None  # of each text, besides what the model reads


class Reranker:
    """A cross-encoder under its name here; its units are pairs."""

    def __init__(self, name: str, scorer: CrossEncoder) -> None:
        if scorer.num_labels != 1:
            raise InputError(f"{name} has {scorer.num_labels} labels; a re-ranker gives one score a pair.")
        self.name, self.scorer = name, scorer
        self.reranking = Reranking(scorer)  # here, so that a bad weight in its folder is refused at the start

    @property
    def max_length(self) -> int | None:
        """Return the tokens that the model reads; None: any number."""
        return self.scorer.max_length

    @property
    def num_at_once(self) -> int:
        """Return how many batches are best computed side by side: one a core."""
        return self.scorer._engine.executor.num_workers

    def prepare(self, queries: Sequence[str], texts: Sequence[str], asked: Scoring | None = None) -> Steps[Payload]:
        """Count the tokens of pairs, and cut what is too long. One query is that of every text."""
        asked, tokenizer = asked or Scoring(), self.scorer.tokenizer
        num_query = yield from self._counted(queries)
        num_text = yield from self._counted(texts)
        if len(queries) == 1:
            queries, num_query = [*queries] * len(texts), num_query.repeat(len(texts))
        longest = int(num_text.max(initial=1))  # a client's number may be larger than an array can hold
        kept = num_text if asked.max_tokens is None else np.minimum(num_text, min(asked.max_tokens, longest))
        limit, room = self.scorer.max_length, tokenizer.room(tokenizer.pair)
        tokens = num_query + kept + tokenizer.pair.num_special
        is_cut = kept < num_text
        queries, given, all_query = list(queries), list(texts), num_query
        if limit is not None and room is not None:
            if not asked.truncate and (tokens > limit).any():
                row = int(np.argmax(tokens > limit))
                raise Refused(
                    "too_large", f"Query and text {row} have {tokens[row]} tokens; {self.name} reads {limit}."
                )
            is_cut |= tokens > limit
            tokens = np.minimum(tokens, limit)
            if asked.keeps_end:
                num_query, kept = longest_first(num_query, kept, room)
        for row in np.flatnonzero(is_cut).tolist():
            given[row] = trimmed(tokenizer, texts[row], int(kept[row]), asked.keeps_end)
            if num_query[row] < all_query[row]:
                queries[row] = trimmed(tokenizer, queries[row], int(num_query[row]), asked.keeps_end)
            yield
        cut = np.flatnonzero(is_cut).tolist()
        return Payload(list(zip(queries, given, strict=True)), tokens.tolist(), cut_rows=cut)

    def _counted(self, texts: Sequence[str]) -> Steps[Ints]:
        """Count the tokens of texts, without special ones."""
        counts = []
        for part in pieces(texts):
            counts.append(self.scorer.tokenizer.bodies(texts[part])[1])
            yield
        return np.concatenate(counts)

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
