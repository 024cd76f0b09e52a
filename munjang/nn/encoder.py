"""The encoder: one network for the whole BERT family, over packed texts, for training and inference.

T tokens of the whole batch, D width, N heads, K width of a head. A family (nn/families/) says which parts a
checkpoint has and what its tensors are called; the arithmetic is here, once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.errors import UnsupportedModel
from munjang.nn.attention import Bias, attend, attend_one
from munjang.nn.int8 import layer
from munjang.nn.linear import MAX_ROWS, Linear, round_up
from munjang.nn.norm import Norm, is_fused
from munjang.text.packing import Packed

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_python": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_fast": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}


@dataclass(frozen=True)
class Architecture:
    """The shape of an encoder, read from config.json by its family."""

    vocab_size: int
    width: int
    num_layers: int
    num_heads: int
    inner_width: int
    activation: str
    norm_eps: float
    max_positions: int
    max_tokens: int  # longest text that the positions allow
    embedding_width: int = 0  # ELECTRA, ALBERT: narrower embeddings, then a projection; 0: as wide as the network
    num_types: int = 0
    pad_id: int | None = None  # RoBERTa, MPNet: positions are counted from pad_id + 1
    has_positions: bool = True
    num_buckets: int = 0  # MPNet: relative positions as a bias, shared by all layers
    shared: tuple[int, ...] = ()  # ALBERT: which block each layer uses; empty: every layer its own
    blocks_per_group: int = 1
    is_pre_norm: bool = False  # ModernBERT, with what follows
    has_gate: bool = False
    has_norm_bias: bool = True
    has_attention_bias: bool = True
    has_inner_bias: bool = True
    rotary_bases: tuple[float, ...] = ()  # one per layer
    windows: tuple[int | None, ...] = ()  # tokens seen on either side, one per layer; empty: all
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0  # on the attention weights
    out_dropout: float = 0.0  # behind the attention
    inner_dropout: float = 0.0  # behind the gate
    down_dropout: float = 0.0  # behind the feed-forward part

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise UnsupportedModel(
                f"Unknown activation {self.activation!r}; we compute {', '.join(sorted(ACTIVATIONS))}."
            )
        if self.width % self.num_heads:
            raise UnsupportedModel(f"The width {self.width} is not a multiple of the {self.num_heads} heads.")


class Embeddings(nn.Module):
    """The sum of word, position and segment vectors, a norm, and a projection if they are narrower than the layers."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        width = shape.embedding_width or shape.width
        self.word = nn.Embedding(shape.vocab_size, width)
        self.position = nn.Embedding(shape.max_positions, width) if shape.has_positions else None
        self.segment = nn.Embedding(shape.num_types, width) if shape.num_types else None
        self.norm = Norm(width, shape.norm_eps, bias=shape.has_norm_bias)
        self.project = Linear(width, shape.width) if shape.embedding_width else None
        self.offset = 0 if shape.pad_id is None else shape.pad_id + 1
        self.dropout = nn.Dropout(shape.embedding_dropout)

    def forward(self, batch: Packed) -> Tensor:
        x_TD = self.dropout(self._normed(batch))
        if torch.is_autocast_enabled(x_TD.device.type):  # norms give fp32 there; all that follows is in half precision
            x_TD = x_TD.to(torch.get_autocast_dtype(x_TD.device.type))
        return x_TD if self.project is None else self.project(x_TD)

    def _normed(self, batch: Packed) -> Tensor:
        if is_fused(self.word.weight) and batch.num_tokens:
            from munjang.nn import cuda

            tables = (self.word, self.position, self.segment)
            return cuda.embed_norm(batch.ids_T, batch.positions_T, batch.types_T, tables, self.offset, self.norm)
        x_TD = self.word(batch.ids_T)
        if self.segment is not None:
            x_TD = x_TD + (self.segment.weight[0] if batch.types_T is None else self.segment(batch.types_T))
        if self.position is not None:
            x_TD = x_TD + self.position(batch.positions_T + self.offset)
        return cast(Tensor, self.norm(x_TD))


class Block(nn.Module):
    """A layer: attention and a feed-forward part, each with its residual and norm."""

    def __init__(self, shape: Architecture, has_attention_norm: bool = True) -> None:
        super().__init__()
        width, inner = shape.width, shape.inner_width
        self.shape = shape
        self.activation = ACTIVATIONS[shape.activation]
        self.qkv = Linear(width, 3 * width, bias=shape.has_attention_bias)
        self.out = Linear(width, width, bias=shape.has_attention_bias)
        norm = Norm(width, shape.norm_eps, bias=shape.has_norm_bias)
        self.attention_norm = norm if has_attention_norm else nn.Identity()
        self.up = Linear(width, 2 * inner if shape.has_gate else inner, bias=shape.has_inner_bias)
        self.down = Linear(inner, width, bias=shape.has_inner_bias)
        self.inner_norm = Norm(width, shape.norm_eps, bias=shape.has_norm_bias)
        # modules, as code that trains looks for nn.Dropout to change or silence it
        self.attention_dropout = shape.attention_dropout
        self.out_dropout, self.down_dropout = nn.Dropout(shape.out_dropout), nn.Dropout(shape.down_dropout)
        self.inner_dropout = nn.Dropout(shape.inner_dropout)

    def attention(
        self, x_TD: Tensor, batch: Packed, bias: Bias | None, rotary: Tensor | None, window: int | None
    ) -> Tensor:
        heads = self.shape.num_heads
        qkv_T3NK = self.qkv(x_TD).view(len(x_TD), 3, heads, x_TD.shape[1] // heads)
        if rotary is not None:
            qkv_T3NK = rotate(qkv_T3NK, rotary)
        seen_TNK = attend(qkv_T3NK, batch, bias, self.attention_dropout if self.training else 0.0, window)
        return self.out(seen_TNK.reshape(x_TD.shape))

    def inner(self, x_TD: Tensor) -> Tensor:
        if self.shape.has_gate:
            up, gate = self.up(x_TD).chunk(2, dim=-1)
            up = self.inner_dropout(self.activation(up) * gate)
        else:
            up = self.up(x_TD, self.activation)
        return self.down(up)

    def forward(
        self, x_TD: Tensor, batch: Packed, bias: Bias | None, rotary: Tensor | None, window: int | None
    ) -> Tensor:
        if not torch.is_grad_enabled() and layer.has_static_scales(self) and len(x_TD):
            return layer.layer(self, x_TD, batch, bias)
        behind, below = (self.out_dropout.p, self.down_dropout.p) if self.training else (0.0, 0.0)
        if self.shape.is_pre_norm:
            seen_TD = self.attention(self.attention_norm(x_TD), batch, bias, rotary, window)
            x_TD = x_TD + F.dropout(seen_TD, behind)
            return x_TD + F.dropout(self.inner(self.inner_norm(x_TD)), below)
        x_TD = self.attention_norm(self.attention(x_TD, batch, bias, rotary, window), x_TD, behind)
        return cast(Tensor, self.inner_norm(self.inner(x_TD), x_TD, below))

    @property
    def is_prepacked(self) -> bool:
        return all(getattr(linear, "prepacked", None) is not None for linear in self.products)

    @property
    def products(self) -> tuple[Linear, Linear, Linear, Linear]:
        return self.qkv, self.out, self.up, self.down

    def forward_single_text(self, x_TD: Tensor, num_tokens: int, bias: Bias | None) -> Tensor:
        """Compute `forward` for one text with prepacked weights; rows past `num_tokens` are padding and masked."""
        if layer.has_static_scales(self):
            return layer.single_text(self, x_TD, num_tokens, bias)
        seen_TNK = attend_one(self.qkv.product(x_TD).view(len(x_TD), 3, self.shape.num_heads, -1), num_tokens, bias)
        x_TD = self.attention_norm(self.out.product(seen_TNK.reshape(x_TD.shape)), x_TD)
        return cast(Tensor, self.inner_norm(self.down.product(self.up.product(x_TD, self.activation)), x_TD))


class TokenEncoder(nn.Module):
    """The base of all encoders, which turn a packed batch into token vectors [T, D]."""

    engine = "munjang (packed)"  # the name of the engine, for `info`
    is_exported = False  # a graph without weights that could be saved or trained
    is_static = False  # a look-up without layers

    @property
    def own(self) -> "Encoder | None":
        """Itself if it is our packed encoder, whose layers can be trained, removed and measured; else None."""
        return None

    @property
    def width(self) -> int:
        """The dimension of a token vector."""
        raise NotImplementedError

    @property
    def vocab_size(self) -> int:
        """The number of rows of the embedding table."""
        raise NotImplementedError

    @property
    def table(self) -> nn.Embedding | None:
        """The embedding table, if it can be replaced; else None."""
        return None

    def put_table(self, table: nn.Embedding) -> None:
        """Replace the embedding table by that of another vocabulary."""
        raise NotImplementedError

    @property
    def max_tokens(self) -> int | None:
        """The longest text that the positions allow; None: no limit."""
        return None

    @property
    def uncounted_id(self) -> int | None:
        """The token without a position of its own (RoBERTa's padding); None: every token has one."""
        return None

    @property
    def num_parameters(self) -> int:
        """The number of weights."""
        return sum(parameter.numel() for parameter in self.parameters())

    def facts(self) -> dict[str, object]:
        """Return facts for `info` that only this kind of encoder has."""
        return {}


class Encoder(TokenEncoder):
    """An encoder from packed ids to one vector per token."""

    ends: tuple[Sequence[int], Sequence[int]] = ((), ())  # ids before and behind every text, where they are known

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.shape = shape
        self.embeddings = Embeddings(shape)
        self.relative = nn.Embedding(shape.num_buckets, shape.num_heads) if shape.num_buckets else None
        own = shape.shared or tuple(range(shape.num_layers))
        # ModernBERT's embeddings end in a norm, so its first block has none of its own
        self.blocks = nn.ModuleList(Block(shape, not (shape.is_pre_norm and i == 0)) for i in range(max(own) + 1))
        self.order = own
        self.final_norm = Norm(shape.width, shape.norm_eps, bias=shape.has_norm_bias) if shape.is_pre_norm else None

    @property
    def own(self) -> "Encoder":
        return self

    @property
    def layer(self) -> nn.ModuleList:
        """The blocks, by the name under which code written for BERT freezes or reads some of them."""
        return self.blocks

    @property
    def width(self) -> int:
        return self.shape.width

    @property
    def vocab_size(self) -> int:
        return self.shape.vocab_size

    @property
    def table(self) -> nn.Embedding:
        return self.embeddings.word

    def put_table(self, table: nn.Embedding) -> None:
        self.embeddings.word = table
        self.shape = replace(self.shape, vocab_size=table.num_embeddings)

    @property
    def max_tokens(self) -> int:
        return self.shape.max_tokens

    @property
    def uncounted_id(self) -> int | None:
        return self.shape.pad_id

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        shape = self.shape
        sizes = (shape.num_heads, shape.activation, shape.norm_eps, shape.shared, shape.pad_id)
        return (*sizes, shape.rotary_bases, shape.windows)

    def facts(self) -> dict[str, object]:
        return {"layers": self.shape.num_layers, "width": self.shape.width, "heads": self.shape.num_heads}

    def forward(self, batch: Packed) -> Tensor:
        """Return the token vectors [T, D] of the last layer."""
        return self._forward_single_text(batch) if self._is_single_text(batch) else self.layers(batch)[-1]

    def _is_single_text(self, batch: Packed) -> bool:
        """Return whether this is one text, with prepacked weights and without ModernBERT's parts or hidden tokens."""
        shape = self.shape
        has_more = shape.is_pre_norm or shape.has_gate or shape.rotary_bases or shape.windows or batch.seen is not None
        if len(batch.lengths) != 1 or not 0 < batch.num_tokens <= MAX_ROWS or has_more or torch.is_grad_enabled():
            return False
        return all(cast(Block, block).is_prepacked for block in self.blocks)

    def _forward_single_text(self, batch: Packed) -> Tensor:
        """Pad once instead of in every product, between which a short text spends a third of its time."""
        num_tokens, x_TD = batch.num_tokens, round_up(self.embeddings(batch))
        bias = None if self.relative is None else RelativeBias(self.relative)
        for block in self.order:
            x_TD = cast(Block, self.blocks[block]).forward_single_text(x_TD, num_tokens, bias)
        return x_TD[:num_tokens]

    def layers(self, batch: Packed) -> list[Tensor]:
        """Return the token vectors after the embeddings and after every layer."""
        states = [self.embeddings(batch)]
        for step in self.steps(batch):
            states.append(step(states[-1]))
        return states

    def steps(self, batch: Packed) -> list[Callable[[Tensor], Tensor]]:
        """Return each layer as a function of its input token vectors; a final norm belongs to the last one."""
        shape = self.shape
        bias = None if self.relative is None else RelativeBias(self.relative)
        tables = {base: rotary_table(base, shape.width // shape.num_heads, batch) for base in set(shape.rotary_bases)}
        rotaries: Sequence[Tensor | None] = [tables[base] for base in shape.rotary_bases] or [None] * shape.num_layers
        windows = shape.windows or [None] * shape.num_layers
        steps: list[Callable[[Tensor], Tensor]] = [
            partial(self.blocks[block], batch=batch, bias=bias, rotary=rotary, window=window)
            for block, rotary, window in zip(self.order, rotaries, windows, strict=True)
        ]
        if self.final_norm is not None:
            last, norm = steps.pop(), self.final_norm
            steps.append(lambda x_TD: norm(last(x_TD)))
        return steps


class RelativeBias:
    """MPNet's bias by distance: exact for the 8 nearest tokens, logarithmic up to 128, then one bucket."""

    def __init__(self, table: nn.Embedding) -> None:
        self.table = table
        self.bias_of_length: dict[int, Tensor] = {}

    def by_distance(self, reach: int) -> Tensor:
        """Return the bias by distance (query minus key) from -reach to reach: [N, 2 * reach + 1]."""
        half, exact = 16, 8  # transformers takes 32 buckets whatever config.json says, so trained weights mean that
        distance = torch.arange(-reach, reach + 1, device=self.table.weight.device)  # positive looks back
        far = distance.abs()
        scaled = torch.log(far.clamp(min=1).float() / exact) / math.log(128 / exact) * (half - exact)
        bucket = torch.where(far < exact, far, (exact + scaled.long()).clamp(max=half - 1))
        bias: Tensor = self.table(bucket + half * (distance < 0))
        return bias.t().contiguous()

    def __call__(self, length: int) -> Tensor:
        """Return the bias of all pairs of tokens in a text: [1, N, L, L]."""
        if length not in self.bias_of_length:
            position = torch.arange(length, device=self.table.weight.device)
            distance = position[:, None] - position[None, :]
            self.bias_of_length[length] = self.by_distance(length - 1)[:, distance + length - 1][None]
        return self.bias_of_length[length]


def rotary_table(base: float, width: int, batch: Packed) -> Tensor:
    """Return cosine and sine of every token's position: [2, T, 1, K]."""
    frequency_K = base ** -(torch.arange(0, width, 2, device=batch.positions_T.device).float() / width)
    angle_TK = batch.positions_T[:, None].float() * frequency_K
    angle_TK = torch.cat([angle_TK, angle_TK], dim=-1)
    return torch.stack([angle_TK.cos(), angle_TK.sin()])[:, :, None]


def rotate(qkv_T3NK: Tensor, rotary: Tensor) -> Tensor:
    """Rotate queries and keys by their position, in fp32: bf16 angles lose long distances."""
    cosine, sine = rotary[0, :, None], rotary[1, :, None]  # [T, 1, 1, K]
    turned = qkv_T3NK[:, :2].float()
    left, right = turned.chunk(2, dim=-1)
    turned = turned * cosine + torch.cat([-right, left], dim=-1) * sine
    return torch.cat([turned.to(qkv_T3NK.dtype), qkv_T3NK[:, 2:]], dim=1)
