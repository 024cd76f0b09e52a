"""Pooling: token vectors to one vector per text, in fp32.    T tokens of the whole batch, B texts, D width.

The names are those that checkpoints use. To add one: a function over `Texts` and a line in POOLERS. The function runs
on packed tensors here and builds the nodes of an ONNX export in nn/onnx/outputs.py.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from munjang.errors import InputError, unknown
from munjang.nn.norm import is_fused
from munjang.nn.onnx.graph import Node
from munjang.text.flat import cumulative
from munjang.text.packing import Packed
from munjang.types import Ints

Value = TypeVar("Value", Tensor, Node)

MAX_MODES = 16  # each makes vectors longer by the encoder's width; known models have one or two


class Texts(Generic[Value]):
    """The tokens of a batch that are pooled, with the operations of poolings; a text without tokens gives zeros."""

    @property
    def count(self) -> Value:
        """The number of each text's tokens, at least 1: [B, 1]."""
        raise NotImplementedError

    @property
    def places(self) -> Value:
        """The place of each token in its text, from 1."""
        raise NotImplementedError

    def first(self) -> Value:
        """Return the first token of each text: [B, D]."""
        raise NotImplementedError

    def last(self) -> Value:
        """Return the last token of each text: [B, D]."""
        raise NotImplementedError

    def highest(self) -> Value:
        """Return the largest value of each component: [B, D]."""
        raise NotImplementedError

    def total(self, weights: Value | None = None) -> Value:
        """Add up each text's tokens, each times its weight: [B, D]."""
        raise NotImplementedError

    def average(self) -> Value:
        """Return the mean of each text's tokens: [B, D]."""
        return self.total() / self.count

    def total_weight(self, weights: Value) -> Value:
        """Add up each text's weights: [B, 1]."""
        raise NotImplementedError


def first(texts: Texts[Value]) -> Value:
    """Take the first token."""
    return texts.first()


def last(texts: Texts[Value]) -> Value:
    """Take the last token."""
    return texts.last()


def mean(texts: Texts[Value]) -> Value:
    """Average over each text's own tokens."""
    return texts.average()


def mean_sqrt_length(texts: Texts[Value]) -> Value:
    """Divide the sum by the square root of the number of tokens."""
    return texts.total() / texts.count.sqrt()


def weighted_mean(texts: Texts[Value]) -> Value:
    """Average with the weight n for the n-th token of the text."""
    return texts.total(texts.places) / texts.total_weight(texts.places).clamp(min=1)


def maximum(texts: Texts[Value]) -> Value:
    """Take the largest value of each component."""
    return texts.highest()


POOLERS: dict[str, Callable[[Texts[Any]], Any]] = {
    "cls": first,
    "max": maximum,
    "mean": mean,
    "mean_sqrt_len_tokens": mean_sqrt_length,
    "weightedmean": weighted_mean,
    "lasttoken": last,
}


def check(modes: Sequence[str]) -> tuple[str, ...]:
    """Refuse names that are not in the table."""
    for mode in modes:
        if mode not in POOLERS:
            raise unknown("pooling", mode, POOLERS)
    if len(modes) > MAX_MODES:
        raise InputError(f"A pooling has at most {MAX_MODES} modes, not {len(modes):,}.")
    return tuple(modes)


def pool(tokens_TD: Tensor, batch: Packed, modes: Sequence[str]) -> Tensor:
    """Return one vector per text: each mode's result, side by side, in fp32."""
    texts = PackedTexts(tokens_TD, batch)
    vectors = [POOLERS[mode](texts) for mode in modes]
    return vectors[0] if len(modes) == 1 else torch.cat(vectors, dim=-1)


class PackedTexts(Texts[Tensor]):
    """The tokens of a packed batch, without the prompts that are left out of pooling."""

    def __init__(self, tokens_TD: Tensor, batch: Packed) -> None:
        self.batch, skip = batch, batch.skip
        self.kept_T: Tensor | None = None
        if skip is not None and skip.any():
            self.kept_T = torch.from_numpy(_kept(batch.lengths, skip)).to(tokens_TD.device)
            tokens_TD = tokens_TD[self.kept_T]
        self.own_TD = tokens_TD

    @cached_property
    def lengths(self) -> Tensor:
        """The number of each text's tokens that are pooled."""
        if self.batch.skip is None or self.kept_T is None:
            return self.batch.starts_B.diff().long()  # already there: no copy to wait for
        lengths = np.maximum(self.batch.lengths - self.batch.skip, 0)
        return torch.from_numpy(lengths).to(self.own_TD.device)

    @cached_property
    def floats(self) -> Tensor:
        """Return the tokens in fp32: sums in bf16 drift past a few hundred of them."""
        return self.own_TD.float()

    @property
    def count(self) -> Tensor:
        return self.lengths.clamp(min=1)[:, None]

    @cached_property
    def places(self) -> Tensor:
        # not the positions, which leave out a padding token that a text spells out (RoBERTa)
        places_T = torch.arange(self.batch.num_tokens, device=self.batch.ids_T.device) - self.batch.bounds[0]
        return (places_T if self.kept_T is None else places_T[self.kept_T]).float() + 1

    def first(self) -> Tensor:
        return self._at(self.lengths.cumsum(0) - self.lengths)

    def last(self) -> Tensor:
        return self._at(self.lengths.cumsum(0) - 1)

    def highest(self) -> Tensor:
        highest_BD = torch.segment_reduce(self.floats, "max", lengths=self.lengths, axis=0, unsafe=True)
        return torch.where(self.lengths[:, None] > 0, highest_BD, torch.zeros_like(highest_BD))

    def average(self) -> Tensor:
        if self.kept_T is not None or not is_fused(self.own_TD):
            return super().average()
        from munjang.nn import cuda

        return cuda.average(self.own_TD.contiguous(), self.batch.starts_B)

    def total(self, weights: Tensor | None = None) -> Tensor:
        return self._sum(self.floats if weights is None else self.floats * weights[:, None])

    def total_weight(self, weights: Tensor) -> Tensor:
        return self._sum(weights[:, None])

    def _sum(self, values_TD: Tensor) -> Tensor:
        # segment_reduce adds in a fixed order; index_add_ on CUDA would not
        return torch.segment_reduce(values_TD, "sum", lengths=self.lengths, axis=0, unsafe=True)

    def _at(self, places_B: Tensor) -> Tensor:
        if not len(self.own_TD):
            return self.floats.new_zeros(len(self.lengths), self.own_TD.shape[1])
        tokens_BD = self.own_TD[places_B.clamp(0, len(self.own_TD) - 1)].float()
        return torch.where(self.lengths[:, None] > 0, tokens_BD, torch.zeros_like(tokens_BD))


def _kept(lengths: Ints, skip: Ints) -> Ints:
    places = np.arange(int(lengths.sum())) - np.repeat(cumulative(lengths)[:-1], lengths)
    return np.flatnonzero(places >= np.repeat(skip, lengths))
