"""Objectives of late interaction: MaxSim of the token vectors of queries and documents.

B examples, K candidates of each, T tokens of a text, D dimension.

The outputs are a list for each text column, with the token vectors [T, D] of each example's text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.base import Extras, Objective, positive
from munjang.objectives.distances import full
from munjang.objectives.kl import KL
from munjang.objectives.margin_mse import MarginMSE


def own_scores(outputs: Sequence[Any], is_mean: bool) -> Tensor:
    """Score each query's own candidates: [B, K]."""
    rows = [maxsim([query_TD], own)[0] for query_TD, *own in zip(*outputs, strict=True)]
    return _per_token(torch.stack(rows), outputs[0], is_mean)


def maxsim(queries: Sequence[Tensor], documents: Sequence[Tensor]) -> Tensor:
    """Score every document against every query: [A, B]; as vectors/maxsim.py, in one block and with gradients."""
    scores_TS = full(torch.cat(list(documents))) @ full(torch.cat(list(queries))).t()
    document_of_T, query_of_S = _text_of(documents), _text_of(queries)
    lowest_BS = scores_TS.new_full((len(documents), scores_TS.shape[1]), float("-inf"))
    best_BS = lowest_BS.scatter_reduce(0, document_of_T[:, None].expand_as(scores_TS), scores_TS, "amax")
    best_BS = best_BS.masked_fill(best_BS == float("-inf"), 0)  # of a document without tokens
    return best_BS.new_zeros(len(queries), len(documents)).index_add(0, query_of_S, best_BS.t())


def _text_of(texts: Sequence[Tensor]) -> Tensor:
    """Return which text each token is of."""
    numbers = np.repeat(np.arange(len(texts)), [len(vectors_TD) for vectors_TD in texts])
    return torch.from_numpy(numbers).to(texts[0].device)


def _per_token(scores_BM: Tensor, queries: Sequence[Tensor], is_mean: bool) -> Tensor:
    if not is_mean:
        return scores_BM
    return scores_BM / scores_BM.new_tensor([max(len(query_TD), 1) for query_TD in queries])[:, None]


class LateInBatch(Objective):
    """Cross-entropy of finding the positive among all candidates of the batch by MaxSim.

    `is_mean` divides a score by the query's tokens, so that one temperature suits short and long queries. A candidate
    equal to the positive or to the query is no negative.
    """

    needs = "token_vectors"
    num_texts = (2, None)
    extras = ("texts",)

    def __init__(self, temperature: float = 0.02, is_mean: bool = True) -> None:
        super().__init__()
        self.temperature, self.is_mean = positive("temperature", temperature), is_mean

    def forward(self, outputs: Sequence[Any], extras: Extras) -> Tensor:
        queries, documents = list(outputs[0]), [vectors_TD for column in outputs[1:] for vectors_TD in column]
        scores_BM = _per_token(maxsim(queries, documents), queries, self.is_mean) / self.temperature
        texts = extras["texts"]
        own_B, texts_M = torch.arange(len(queries), device=scores_BM.device), texts[:, 1:].t().reshape(-1)
        is_false_BM = (texts[:, 1, None] == texts_M) | (texts[:, 0, None] == texts_M)
        is_false_BM[own_B, own_B] = False
        return F.cross_entropy(scores_BM.masked_fill(is_false_BM, float("-inf")), own_B)


class LateKL(KL):
    """Kullback-Leibler divergence of MaxSim's softmax over a query's candidates from a teacher's, times `scale`."""

    needs = "token_vectors"

    def __init__(
        self,
        temperature: float = 0.05,
        teacher_temperature: float | None = 1.0,
        is_mean: bool = True,
        scale: float | None = 1.0,
    ) -> None:
        super().__init__(temperature, teacher_temperature, scale=scale)
        self.is_mean = is_mean

    def values(self, outputs: Sequence[Any]) -> Tensor:
        """Return the student's score of each candidate: [B, K]."""
        return own_scores(outputs, self.is_mean)


class LateMarginMSE(MarginMSE):
    """Mean squared error of the margins of MaxSim between candidates against a teacher's."""

    needs = "token_vectors"

    def __init__(self, is_mean: bool = False) -> None:
        super().__init__()
        self.is_mean = is_mean

    def values(self, outputs: Sequence[Any]) -> Tensor:
        """Return the student's score of each candidate: [B, K]."""
        return own_scores(outputs, self.is_mean)
