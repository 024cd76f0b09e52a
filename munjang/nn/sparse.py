"""Networks of sparse vectors: packed batch to one weight per dimension, most of them zero.

T tokens of the whole batch, B texts, D width, V dimensions (words of the vocabulary, or features of CSR).

A head turns token vectors into rows. To add one: a class with `num_outputs` and `forward(tokens_TD, batch, encoder)`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.errors import CheckpointError
from munjang.nn import pooling
from munjang.nn.encoder import TokenEncoder
from munjang.nn.network import EncoderNetwork
from munjang.nn.prepacked import prepack_exact
from munjang.nn.words import WordHead
from munjang.text.packing import Packed

MAX_BLOCK_SCORES = 1 << 24  # scores of words computed at once: 64 MB
SPLADE_POOLINGS = ("max", "sum")
SPLADE_ACTIVATIONS = {"relu": 1, "log1p_relu": 2}  # how often the logarithm is taken


class SpladeHead(nn.Module):
    """SPLADE: the logarithm of the word scores over zero, the highest or the sum over the tokens of a text."""

    def __init__(self, words: WordHead, pooling: str = "max", activation: str = "relu") -> None:
        super().__init__()
        self.words = words
        self.pooling, self.activation = pooling, activation

    @property
    def num_outputs(self) -> int:
        """The number of words."""
        return self.words.shape.vocab_size

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.pooling, self.activation)

    def forward(self, tokens_TD: Tensor, batch: Packed, encoder: TokenEncoder) -> Tensor:
        assert encoder.table is not None
        states_TW, words_VW = self.words.transform(tokens_TD), encoder.table.weight
        return splade_rows(lambda part: self.words.scores(states_TW[part], words_VW), batch, self)


class GivenScoresHead(nn.Module):
    """SPLADE where the encoder itself gives a score per word: a masked language model of transformers."""

    def __init__(self, num_outputs: int, pooling: str = "max", activation: str = "relu") -> None:
        super().__init__()
        self.num_outputs = num_outputs
        self.pooling, self.activation = pooling, activation

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.pooling, self.activation)

    def forward(self, scores_TV: Tensor, batch: Packed, encoder: TokenEncoder) -> Tensor:
        return splade_rows(lambda part: scores_TV[part].float(), batch, self)


def splade_rows(scores_of: Callable[[slice], Tensor], batch: Packed, head: SpladeHead | GivenScoresHead) -> Tensor:
    """Pool word scores by text; `scores_of` computes them for a slice of tokens, as many as fit the memory."""
    num_logs, num_words, is_max = SPLADE_ACTIVATIONS[head.activation], head.num_outputs, head.pooling == "max"
    max_tokens = max(MAX_BLOCK_SCORES // num_words, 1)
    rows: list[Tensor] = []
    for start, texts, length in batch.runs:
        at_once = max(max_tokens // length, 1)
        for first in range(0, texts, at_once):
            num_texts, begin = min(at_once, texts - first), start + first * length
            end = begin + num_texts * length
            step = max_tokens if num_texts == 1 else end - begin  # a long text in several blocks
            blocks = []
            for place in range(begin, end, step):
                scores_BLV = scores_of(slice(place, min(place + step, end))).view(num_texts, -1, num_words)
                # the logarithm rises with the score, so that the highest can be taken first
                blocks.append(scores_BLV.amax(1) if is_max else _weights(scores_BLV, num_logs).sum(1))
            stacked = torch.stack(blocks)
            rows.append(_weights(stacked.amax(0), num_logs) if is_max else stacked.sum(0))
    num_empty = int((batch.lengths == 0).sum())  # they stand last
    return torch.cat([*rows, torch.zeros(num_empty, num_words, device=batch.ids_T.device)])


def _weights(scores: Tensor, num_logs: int) -> Tensor:
    weights = scores.relu()
    for _ in range(num_logs):
        weights = weights.log1p()
    return weights


class TokenWeightHead(nn.Module):
    """A weight for each token that a text has: BGE-M3's by a layer, without one the encoder's only column."""

    def __init__(self, num_outputs: int, linear: nn.Linear | None = None, excluded: Sequence[int] = ()) -> None:
        super().__init__()
        self.num_outputs, self.linear, self.excluded = num_outputs, linear, tuple(excluded)

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return self.excluded

    def forward(self, tokens_TD: Tensor, batch: Packed, encoder: TokenEncoder) -> Tensor:
        tokens_TD = tokens_TD.float()
        weights_T = tokens_TD[:, 0] if self.linear is None else F.relu(self.linear(tokens_TD))[:, 0]
        text_of_T = torch.searchsorted(
            batch.starts_B, torch.arange(batch.num_tokens, dtype=torch.int32, device=batch.ids_T.device), right=True
        )
        places_T = (text_of_T - 1) * self.num_outputs + batch.ids_T
        rows = weights_T.new_zeros(len(batch.lengths) * self.num_outputs)
        rows = rows.scatter_reduce(0, places_T, weights_T, "amax", include_self=False)
        rows_BV = rows.view(len(batch.lengths), self.num_outputs)
        if self.excluded:
            keeps_V = torch.ones(self.num_outputs, device=rows_BV.device)
            keeps_V[list(self.excluded)] = 0
            rows_BV = rows_BV * keeps_V
        return rows_BV


class AutoEncoderHead(nn.Module):
    """CSR: a sentence vector as its few strongest features."""

    def __init__(self, modes: Sequence[str], tail: Sequence[nn.Module], features: "SparseAutoEncoder") -> None:
        super().__init__()
        self.modes, self.tail, self.features = pooling.check(modes), nn.ModuleList(tail), features
        self.includes_prompt = True

    @property
    def num_outputs(self) -> int:
        """The number of features."""
        return self.features.encoder.out_features

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.modes, self.includes_prompt)

    def forward(self, tokens_TD: Tensor, batch: Packed, encoder: TokenEncoder) -> Tensor:
        return self.features(self.vectors(tokens_TD, batch))

    def vectors(self, tokens_TD: Tensor, batch: Packed) -> Tensor:
        """Return the sentence vectors."""
        vectors_BD = pooling.pool(tokens_TD, batch, self.modes)
        for module in self.tail:
            vectors_BD = module(vectors_BD)
        return vectors_BD


class SparseAutoEncoder(nn.Module):
    """A layer of features, of which the `num_active` strongest are kept; the parameters of sentence-transformers."""

    def __init__(self, width: int, num_features: int, num_active: int, is_normalized: bool = False) -> None:
        super().__init__()
        self.pre_bias = nn.Parameter(torch.zeros(width))
        self.encoder = nn.Linear(width, num_features, bias=False)
        self.latent_bias = nn.Parameter(torch.zeros(num_features))
        self.num_active, self.is_normalized = num_active, is_normalized
        if num_active > num_features:
            raise CheckpointError(f"A sparse auto-encoder of {num_features} features can't keep {num_active}.")

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.num_active, self.is_normalized)

    def forward(self, vectors_BD: Tensor) -> Tensor:
        if self.is_normalized:
            vectors_BD = vectors_BD - vectors_BD.mean(-1, keepdim=True)
            vectors_BD = vectors_BD / (vectors_BD.std(-1, keepdim=True) + 1e-5)
        return strongest(self.activations(vectors_BD), self.num_active).relu()

    def activations(self, vectors_BD: Tensor) -> Tensor:
        """Return the strength of every feature."""
        return F.linear(vectors_BD - self.pre_bias, self.encoder.weight, self.latent_bias)


def strongest(rows_BV: Tensor, count: int) -> Tensor:
    """Keep the `count` greatest values of each row, the rest is zero."""
    if count >= rows_BV.shape[-1]:
        return rows_BV
    values, places = rows_BV.topk(count, dim=-1)
    return torch.zeros_like(rows_BV).scatter(-1, places, values)


class SparseNetwork(EncoderNetwork):
    """An encoder and a head: one row of weights per text, in fp32."""

    def __init__(self, encoder: TokenEncoder, head: Any) -> None:
        super().__init__(encoder)
        self.head = head
        self.includes_prompt = getattr(head, "includes_prompt", True)

    @property
    def num_outputs(self) -> int:
        """The number of dimensions."""
        return int(self.head.num_outputs)

    @property
    def has_words(self) -> bool:
        """Tell whether the dimensions are tokens of the vocabulary."""
        return not isinstance(self.head, AutoEncoderHead)

    def forward(self, batch: Packed) -> Tensor:
        """Return the rows [B, V]."""
        rows_BV: Tensor = self.head(self.encoder(batch), batch, self.encoder)
        return rows_BV

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move the encoder to a device in `dtype`, the head in fp32."""
        self.eval().place_encoder(device, dtype)
        self.head.to(device, torch.float32)
        prepack_exact(self.head)
        return self
