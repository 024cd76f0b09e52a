"""Whole networks: packed batch to sentence vectors, packed batch to scores.

T tokens of the whole batch, B texts, D width, C labels.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from munjang.nn import pooling
from munjang.nn.base import num_multiplied, weights_digest
from munjang.nn.encoder import TokenEncoder
from munjang.nn.heads import ClassificationHead, Dense, Normalize
from munjang.nn.int8 import prepack as int8
from munjang.nn.norm import unit
from munjang.nn.prepacked import prepack_exact
from munjang.text.packing import Packed


class StaticEncoder(TokenEncoder):
    """A table of token vectors without layers (model2vec, StaticEmbedding)."""

    is_static = True

    def __init__(self, weight_VD: Tensor) -> None:
        super().__init__()
        self.embedding = nn.Embedding(weight_VD.shape[0], weight_VD.shape[1], _weight=weight_VD.float().contiguous())

    def forward(self, batch: Packed) -> Tensor:
        tokens_TD: Tensor = self.embedding(batch.ids_T)
        return tokens_TD

    @property
    def width(self) -> int:
        return self.embedding.embedding_dim

    @property
    def vocab_size(self) -> int:
        return self.embedding.num_embeddings

    @property
    def table(self) -> nn.Embedding:
        return self.embedding

    def put_table(self, table: nn.Embedding) -> None:
        self.embedding = table


class EncoderNetwork(nn.Module):
    """The base of networks that consist of an encoder and a head."""

    is_trainable = True
    includes_prompt = True  # whether pooling reads a prompt's tokens too

    def __init__(self, encoder: TokenEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    @property
    def num_multiplied(self) -> int:
        """The number of weights that every token is multiplied with."""
        return num_multiplied(self)

    @property
    def num_parameters(self) -> int:
        """The number of weights."""
        return sum(parameter.numel() for parameter in self.parameters())

    def digest(self) -> str:
        """Hash the weights and modules."""
        return weights_digest(self)

    def place_encoder(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the encoder to a device and prepare it for inference there."""
        if dtype == torch.int8:
            prepack_exact(self.encoder.to(device, torch.float32))  # for the sample, and for layers that stay exact
            int8.prepack(self.encoder)
        else:
            prepack_exact(self.encoder.to(device, dtype))


class TailedNetwork(EncoderNetwork):
    """An encoder and the modules after it, which compute vectors in fp32."""

    def __init__(self, encoder: TokenEncoder, tail: Sequence[nn.Module]) -> None:
        super().__init__(encoder)
        self.tail = nn.ModuleList(tail)

    @property
    def is_unit(self) -> bool:
        """True if the model's own vectors have unit length."""
        return bool(self.tail) and isinstance(self.tail[-1], Normalize)

    @property
    def num_inputs(self) -> int:
        """The dimension of what the first module takes."""
        return self.encoder.width

    @property
    def num_outputs(self) -> int:
        """The dimension of a vector."""
        width = self.num_inputs
        for module in self.tail:
            width = module.linear.out_features if isinstance(module, Dense) else width
        return width

    @property
    def module_names(self) -> list[str]:
        """The names of the modules after the encoder and pooling."""
        return [type(module).__name__ for module in self.tail]

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move the encoder to a device in `dtype`, pooling and the modules after it in fp32."""
        self.eval().place_encoder(device, dtype)
        self.tail.to(device, torch.float32)
        prepack_exact(self.tail)
        return self


class SentenceNetwork(TailedNetwork):
    """An encoder, pooling and the modules after it: one vector per text, in fp32."""

    def __init__(
        self, encoder: TokenEncoder, modes: Sequence[str], tail: Sequence[nn.Module], includes_prompt: bool = True
    ) -> None:
        super().__init__(encoder, tail)
        self.modes = pooling.check(modes)
        self.includes_prompt = includes_prompt

    def forward(self, batch: Packed) -> Tensor:
        """Return the sentence vectors [B, D]."""
        return self.head(self.encoder(batch), batch)

    def raw(self, batch: Packed) -> Tensor:
        """Return the vectors before a final Normalize."""
        return self.head(self.encoder(batch), batch, is_raw=True)

    def head(self, tokens_TD: Tensor, batch: Packed, is_raw: bool = False) -> Tensor:
        """Pool token vectors and run the modules after it; `is_raw` skips a final Normalize."""
        vectors_BD = pooling.pool(tokens_TD, batch, self.modes)
        for index, module in enumerate(self.tail):
            if is_raw and index == len(self.tail) - 1 and isinstance(module, Normalize):
                break
            vectors_BD = module(vectors_BD)
        return vectors_BD

    def add_projection(self, weight_DD: Tensor) -> None:
        """Add a linear layer before the final Normalize, or at the end."""
        layer = Dense(len(weight_DD), len(weight_DD), has_bias=False, activation=nn.Identity())
        layer.linear.weight = nn.Parameter(weight_DD, requires_grad=False)
        device = next(self.encoder.parameters()).device
        self.tail.insert(len(self.tail) - int(self.is_unit), layer.to(device).eval())

    @property
    def num_inputs(self) -> int:
        return self.encoder.width * len(self.modes)

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.modes, self.includes_prompt)


class ModularHead(nn.Module):
    """A cross-encoder's head made of modules: pooling, then dense layers, the last of which gives the logits."""

    def __init__(self, modes: Sequence[str], layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.modes = pooling.check(modes)
        self.layers = nn.ModuleList(layers)

    @property
    def num_labels(self) -> int:
        """The number of columns of the logits."""
        last = self.layers[-1]
        assert isinstance(last, Dense)
        return last.linear.out_features

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.modes,)

    def forward(self, tokens_TD: Tensor, batch: Packed) -> Tensor:
        values = pooling.pool(tokens_TD, batch, self.modes)
        for layer in self.layers:
            values = layer(values)
        return values


def new_head(width: int, num_labels: int, dropout: float = 0.1) -> ModularHead:
    """Create our own head of a new cross-encoder: CLS, dropout, dense, GELU, dropout, projection."""
    layers = [Dense(width, width, activation=nn.GELU()), Dense(width, num_labels, activation=nn.Identity())]
    for layer in layers:
        nn.init.normal_(layer.linear.weight, std=0.02)
        nn.init.zeros_(layer.linear.bias)
    return ModularHead(("cls",), [nn.Dropout(dropout), layers[0], nn.Dropout(dropout), layers[1]])


class PairNetwork(EncoderNetwork):
    """An encoder and a head: one row of logits per pair, in fp32."""

    def __init__(self, encoder: TokenEncoder, head: ClassificationHead | ModularHead) -> None:
        super().__init__(encoder)
        self.head = head

    @property
    def num_outputs(self) -> int:
        """The number of labels of a pair."""
        return self.head.num_labels

    def forward(self, batch: Packed) -> Tensor:
        logits_BC: Tensor = self.head(self.encoder(batch).float(), batch)
        return logits_BC

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move the encoder to a device in `dtype`, the head in fp32."""
        self.eval().place_encoder(device, dtype)
        self.head.to(device, torch.float32)
        prepack_exact(self.head)
        return self


def finish(vectors_BD: Tensor, truncate_dim: int | None, normalize: bool | None) -> Tensor:
    """Keep the leading dimensions (Matryoshka), then scale to unit length if asked."""
    if truncate_dim is not None:
        vectors_BD = vectors_BD[:, :truncate_dim]
    return unit(vectors_BD) if normalize else vectors_BD
