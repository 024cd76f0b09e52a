"""A small packed decoder that writes texts out of their sentence vectors.

T tokens of the whole batch, B texts, D width of a sentence vector, W of a word's embedding, N heads, K width of a head.
"""

from collections import Counter

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEAD_WIDTH = 64
LONGEST_WAVE = 10_000.0  # of the position codes, as in the first transformer


def positions_of(lengths_B: Tensor) -> Tensor:
    """The place of each token in its own text: [T]."""
    starts_B = lengths_B.cumsum(0) - lengths_B
    places_T = torch.arange(int(lengths_B.sum()), device=lengths_B.device)
    return places_T - starts_B.repeat_interleave(lengths_B)


def waves(positions_T: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Sines and cosines of each position: [T, W]. They have no last position."""
    half = torch.arange((width + 1) // 2, device=positions_T.device, dtype=torch.promote_types(dtype, torch.float32))
    angles = positions_T[:, None] * LONGEST_WAVE ** (-2 * half / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width].to(dtype)


class DecoderLayer(nn.Module):
    """Attention to what was written so far, the sentence, and two linear maps."""

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
        """Each token to itself and those before it in its text; texts of equal length are a rectangle by themselves."""
        parts, start = [], 0
        for length, texts in runs:
            rectangle = qkv_T3W[start : start + texts * length].view(texts, length, 3, self.num_heads, -1)
            query, key, value = rectangle.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            parts.append(seen.transpose(1, 2).reshape(texts * length, -1))
            start += texts * length
        return torch.cat(parts)


class Decoder(nn.Module):
    """Layers of width W, so that the word embeddings are both what it reads and what it is scored by."""

    def __init__(self, width: int, word_width: int, num_layers: int) -> None:
        super().__init__()
        self.start = nn.LayerNorm(word_width)  # word embeddings are small beside the waves
        self.layers = nn.ModuleList(DecoderLayer(width, word_width) for _ in range(num_layers))
        self.norm = nn.LayerNorm(word_width)

    def forward(self, words_TW: Tensor, lengths_B: Tensor, vectors_BD: Tensor) -> Tensor:
        """States [T, W] that have seen their sentence and the words up to their own. Shortest texts come first."""
        text_of_T = torch.arange(len(lengths_B), device=lengths_B.device).repeat_interleave(lengths_B)
        counts = Counter(lengths_B.tolist())
        runs = [(length, counts[length]) for length in sorted(counts) if length]
        states_TW = self.start(words_TW) + waves(positions_of(lengths_B), words_TW.shape[1], words_TW.dtype)
        for layer in self.layers:
            states_TW = layer(states_TW, vectors_BD, text_of_T, runs)
        normed_TW: Tensor = self.norm(states_TW)
        return normed_TW
