"""TSDAE: from the vector of a text with words deleted, write the whole text.

T tokens of the whole texts, B texts, D width of a sentence vector, W of a word's embedding, V words.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.objectives.base import IGNORED, Extras, Objective
from munjang.objectives.decoder import Decoder, positions_of
from munjang.objectives.vocabulary import word_loss


class Denoising(Objective):
    """Cross-entropy of each next token, given those before it and the sentence vector. The decoder is dropped."""

    num_texts = (1, 1)
    extras = ("targets", "lengths", "words")
    is_separable = True
    can_be_cached = False  # the word embeddings belong to the encoder
    corruption = "delete"

    def __init__(self, width: int, vocab_size: int, word_width: int | None = None, num_decoder_layers: int = 2) -> None:
        super().__init__()
        self.decoder = Decoder(width, word_width or width, num_decoder_layers)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        vectors_BD, targets_T, lengths_B, words_VW = outputs[0], extras["targets"], extras["lengths"], extras["words"]
        # Texts of equal length next to each other, for attention without padding; a mean does not mind the order
        length_of_T = lengths_B.repeat_interleave(lengths_B)
        targets_T = targets_T[length_of_T.argsort(stable=True)]
        lengths_B, order_B = lengths_B.sort(stable=True)
        places_T = positions_of(lengths_B)
        is_last_T = places_T == lengths_B.repeat_interleave(lengths_B) - 1
        read, wanted = targets_T[~is_last_T], targets_T[places_T > 0]  # by one place apart
        is_wanted = wanted != IGNORED
        if not len(wanted):
            return vectors_BD.sum() * 0 + self.bias.sum() * 0
        read_words = F.embedding(read.clamp(min=0), words_VW).to(self.bias.dtype)
        vectors_BD = vectors_BD[order_B].to(self.bias.dtype)
        states = self.decoder(read_words, (lengths_B - 1).clamp(min=0), vectors_BD)
        return word_loss(states[is_wanted], wanted[is_wanted], words_VW, self.bias)

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return ((extras["targets"] != IGNORED) & (positions_of(extras["lengths"]) > 0)).sum()
