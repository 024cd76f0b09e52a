"""Masked language modelling: guess the tokens that were hidden.

T tokens, N of them hidden, D dimension of a token's state, W of a word's embedding, V words.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from munjang.objectives.base import IGNORED, Extras, Objective
from munjang.objectives.blocks import word_loss


class Masked(Objective):
    """Cross-entropy over the vocabulary at the masked places, through BERT's head tied to the word embeddings."""

    needs = "token_states"
    num_texts = (1, 1)
    extras = ("targets", "words")
    is_separable = True
    can_be_cached = False  # the word embeddings belong to the encoder
    corruption = "mask"

    def __init__(self, hidden_width: int, vocab_size: int, word_width: int | None = None) -> None:
        super().__init__()
        word_width = word_width or hidden_width
        self.transform = nn.Sequential(nn.Linear(hidden_width, word_width), nn.GELU(), nn.LayerNorm(word_width))
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        is_hidden_T = extras["targets"] != IGNORED
        states_NW = self.transform(outputs[0][is_hidden_T].to(self.bias.dtype))
        return word_loss(states_NW, extras["targets"][is_hidden_T], extras["words"], self.bias)

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return (extras["targets"] != IGNORED).sum()
