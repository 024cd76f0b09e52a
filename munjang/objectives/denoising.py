"""TSDAE: from the vector of a text with words deleted, write the whole text.

T tokens of the whole batch, B texts, D dimension of a sentence vector, W of a word's embedding, V words.
"""

from collections import Counter
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.objectives.base import IGNORED, Extras, Objective
from munjang.objectives.blocks import word_loss

HEAD_WIDTH = 64
MAX_WAVELENGTH = 10_000.0  # of the position codes, as in the first transformer


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


def positions_of(lengths_B: Tensor) -> Tensor:
    """Return the position of each token in its own text: [T]."""
    starts_B = lengths_B.cumsum(0) - lengths_B
    places_T = torch.arange(int(lengths_B.sum()), device=lengths_B.device)
    return places_T - starts_B.repeat_interleave(lengths_B)


def waves(positions_T: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return sines and cosines of each position: [T, W]. They have no last position."""
    half = torch.arange((width + 1) // 2, device=positions_T.device, dtype=torch.promote_types(dtype, torch.float32))
    angles = positions_T[:, None] * MAX_WAVELENGTH ** (-2 * half / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width].to(dtype)


class DecoderLayer(nn.Module):
    """Attention to the tokens so far, the sentence vector, and two linear maps."""

    def __init__(self, width: int, word_width: int) -> None:
        super().__init__()
        self.num_heads = max(1, word_width // HEAD_WIDTH)
        while word_width % self.num_heads:
            self.num_heads -= 1
        self.norm_before = nn.LayerNorm(word_width)
        self.qkv = nn.Linear(word_width, 3 * word_width)
        self.out = nn.Linear(word_width, word_width)
        # Attention to the only key there is gives it all the weight, whatever the query: what is left of queries,
        # keys and softmax is a linear map of the sentence vector, the same for all tokens of its text.
        self.sentence = nn.Linear(width, word_width)
        self.norm_between = nn.LayerNorm(word_width)
        self.up = nn.Linear(word_width, 4 * word_width)
        self.down = nn.Linear(4 * word_width, word_width)

    def forward(self, states_TW: Tensor, vectors_BD: Tensor, text_of_T: Tensor, runs: list[tuple[int, int]]) -> Tensor:
        states_TW = states_TW + self.out(self._attend(self.qkv(self.norm_before(states_TW)), runs))
        states_TW = states_TW + self.sentence(vectors_BD)[text_of_T]
        return states_TW + self.down(F.gelu(self.up(self.norm_between(states_TW))))

    def _attend(self, qkv_T3W: Tensor, runs: list[tuple[int, int]]) -> Tensor:
        """Attend from each token to itself and those before it; texts of equal length make a rectangle."""
        parts, start = [], 0
        for length, texts in runs:
            rectangle = qkv_T3W[start : start + texts * length].view(texts, length, 3, self.num_heads, -1)
            query, key, value = rectangle.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            parts.append(seen.transpose(1, 2).reshape(texts * length, -1))
            start += texts * length
        return torch.cat(parts)


class Decoder(nn.Module):
    """A packed decoder of width W, so that word embeddings serve as its input and as its output layer."""

    def __init__(self, width: int, word_width: int, num_layers: int) -> None:
        super().__init__()
        self.start = nn.LayerNorm(word_width)  # word embeddings are small beside the waves
        self.layers = nn.ModuleList(DecoderLayer(width, word_width) for _ in range(num_layers))
        self.norm = nn.LayerNorm(word_width)

    def forward(self, words_TW: Tensor, lengths_B: Tensor, vectors_BD: Tensor) -> Tensor:
        """Return states [T, W] that depend on their sentence and the words so far; shortest texts come first."""
        text_of_T = torch.arange(len(lengths_B), device=lengths_B.device).repeat_interleave(lengths_B)
        counts = Counter(lengths_B.tolist())
        runs = [(length, counts[length]) for length in sorted(counts) if length]
        states_TW = self.start(words_TW) + waves(positions_of(lengths_B), words_TW.shape[1], words_TW.dtype)
        for layer in self.layers:
            states_TW = layer(states_TW, vectors_BD, text_of_T, runs)
        normed_TW: Tensor = self.norm(states_TW)
        return normed_TW
