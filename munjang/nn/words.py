"""The head of a masked language model: token vectors to one score per word of the vocabulary.

T tokens, D width of the encoder, W width of a word's embedding, V words.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn.encoder import ACTIVATIONS


@dataclass(frozen=True)
class WordShape:
    """The shape of a word head: dense, activation, norm, then the product with every word's embedding."""

    width: int
    word_width: int
    vocab_size: int
    activation: str  # of the encoder's ACTIVATIONS
    norm_eps: float = 1e-12
    has_dense_bias: bool = True
    has_norm_bias: bool = True
    has_bias: bool = True


class WordHead(nn.Module):
    """A word head whose last product is tied to the word embeddings, unless it has a matrix of its own."""

    def __init__(self, shape: WordShape, is_tied: bool = True) -> None:
        super().__init__()
        self.shape = shape
        self.activation = ACTIVATIONS[shape.activation]
        self.dense = nn.Linear(shape.width, shape.word_width, bias=shape.has_dense_bias)
        self.norm = nn.LayerNorm(shape.word_width, shape.norm_eps, bias=shape.has_norm_bias)
        self.bias = nn.Parameter(torch.zeros(shape.vocab_size)) if shape.has_bias else None
        self.own_words = None if is_tied else nn.Parameter(torch.zeros(shape.vocab_size, shape.word_width))

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.shape.activation, self.shape.norm_eps)

    def transform(self, states_TD: Tensor) -> Tensor:
        """Return what is compared with the words: [T, W]."""
        states_TW: Tensor = self.norm(self.activation(self.dense(states_TD.to(self.dense.weight.dtype))))
        return states_TW

    def scores(self, states_TW: Tensor, words_VW: Tensor) -> Tensor:
        """Return one score per word, in fp32: [T, V]."""
        words_VW = words_VW if self.own_words is None else self.own_words
        scores_TV = F.linear(states_TW.to(words_VW.dtype), words_VW).float()
        return scores_TV if self.bias is None else scores_TV + self.bias.float()
