"""Whole networks: packed batch to sentence vectors, packed batch to scores.

T tokens of the whole batch, B texts, D width, C labels.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn import pooling
from munjang.nn.heads import ClassificationHead, Dense, Normalize
from munjang.nn.int8 import pack as int8
from munjang.nn.packed import pack_exact
from munjang.text.packing import Packed


class StaticEncoder(nn.Module):
    """Token embeddings without a network (model2vec, StaticEmbedding): a look-up."""

    def __init__(self, weight_VD: Tensor) -> None:
        super().__init__()
        self.embedding = nn.Embedding(weight_VD.shape[0], weight_VD.shape[1], _weight=weight_VD.float().contiguous())

    def forward(self, batch: Packed) -> Tensor:
        tokens_TD: Tensor = self.embedding(batch.ids_T)
        return tokens_TD


class SentenceNetwork(nn.Module):
    """Encoder, pooling, and what follows it: one vector per text, in fp32."""

    def __init__(
        self, encoder: nn.Module, modes: Sequence[str], tail: Sequence[nn.Module], includes_prompt: bool = True
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.modes = pooling.check(modes)
        self.tail = nn.ModuleList(tail)
        self.includes_prompt = includes_prompt

    def forward(self, batch: Packed, is_raw: bool = False) -> Tensor:
        """Sentence vectors; `is_raw` leaves a Normalize at the end out."""
        return self.head(self.encoder(batch), batch, is_raw)

    def head(self, tokens_TD: Tensor, batch: Packed, is_raw: bool = False) -> Tensor:
        """Sentence vectors from token vectors."""
        vectors_BD = pooling.pool(tokens_TD, batch, self.modes)
        for place, module in enumerate(self.tail):
            if is_raw and place == len(self.tail) - 1 and isinstance(module, Normalize):
                break
            vectors_BD = module(vectors_BD)
        return vectors_BD

    @property
    def is_unit(self) -> bool:
        """Whether the model's own vectors have unit length."""
        return bool(self.tail) and isinstance(self.tail[-1], Normalize)

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> "SentenceNetwork":
        """On a device: the encoder in `dtype`, pooling and what follows in fp32."""
        _place(self.eval(), device, dtype)
        self.tail.to(device, torch.float32)
        pack_exact(self.tail)
        return self


class ModularHead(nn.Module):
    """A cross-encoder's head put together from modules: pooling, then dense layers, the last one giving the scores."""

    def __init__(self, modes: Sequence[str], layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.modes = pooling.check(modes)
        self.layers = nn.ModuleList(layers)

    def forward(self, tokens_TD: Tensor, batch: Packed) -> Tensor:
        values = pooling.pool(tokens_TD, batch, self.modes)
        for layer in self.layers:
            values = layer(values)
        return values


def new_head(width: int, num_labels: int, dropout: float = 0.1) -> ModularHead:
    """Our own head for a fresh cross-encoder: CLS, dropout, dense, GELU, dropout, projection."""
    layers = [Dense(width, width, activation=nn.GELU()), Dense(width, num_labels, activation=nn.Identity())]
    for layer in layers:
        nn.init.normal_(layer.linear.weight, std=0.02)
        nn.init.zeros_(layer.linear.bias)
    return ModularHead(("cls",), [nn.Dropout(dropout), layers[0], nn.Dropout(dropout), layers[1]])


class PairNetwork(nn.Module):
    """Encoder and head: one row of logits per pair, in fp32."""

    def __init__(self, encoder: nn.Module, head: ClassificationHead | ModularHead) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, batch: Packed) -> Tensor:
        logits_BC: Tensor = self.head(self.encoder(batch).float(), batch)
        return logits_BC

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> "PairNetwork":
        """On a device: the encoder in `dtype`, the head in fp32."""
        _place(self.eval(), device, dtype)
        self.head.to(device, torch.float32)
        pack_exact(self.head)
        return self


def _place(network: SentenceNetwork | PairNetwork, device: torch.device, dtype: torch.dtype) -> None:
    """The encoder on a device, in the form in which it is computed there."""
    if dtype == torch.int8:
        pack_exact(network.encoder.to(device, torch.float32))  # for the sample, and for layers that stay exact
        int8.pack(network.encoder)
    else:
        pack_exact(network.encoder.to(device, dtype))


def finish(vectors_BD: Tensor, truncate_dim: int | None, normalize: bool | None) -> Tensor:
    """Leading components only (Matryoshka), then unit length if asked."""
    if truncate_dim is not None:
        vectors_BD = vectors_BD[:, :truncate_dim]
    return F.normalize(vectors_BD, dim=-1) if normalize else vectors_BD
