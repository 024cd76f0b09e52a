"""Attention over packed texts: each token sees its own text only.

T tokens of the whole batch, B texts, N heads, K width of a head, L length of a run of equal texts.

Which kernel can do what (the table is walked from the top, the first row that fits is taken):

| kernel | device | dtype | bias | dropout | window | padding |
|---|---|---|---|---|---|---|
| tiles  | CUDA | bf16, fp16 | yes | no | yes | none: several texts a tile, up to 256 tokens each; inference only |
| tiles_with_gradient | CUDA | bf16, fp16 | no | yes | no | none: the same, for training; any length under dropout |
| varlen | CUDA | bf16, fp16 | no | no | torch >= 2.11 | none |
| jagged | CUDA | any | no | no | no | none |
| runs   | any (MPS: untested) | any | yes | yes | yes | none: SDPA over runs of equal length |

Only `runs` knows tokens that nobody sees (`Packed.seen`: ColBERT's expanded queries).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.text.packing import Packed, has_triton
from munjang.types import Ints


@dataclass(frozen=True)
class Demand:
    """The requirements of one call on a kernel."""

    device: str
    dtype: torch.dtype
    head_width: int
    has_bias: bool
    dropout: float
    window: int | None  # tokens seen on either side; None: all
    max_length: int = 0
    has_gradient: bool = False


class Bias(Protocol):
    """A bias that depends on the distance of two tokens."""

    def __call__(self, length: int) -> Tensor:
        """Return the bias of all pairs of tokens in a text: [1, N, L, L]."""

    def by_distance(self, reach: int) -> Tensor:
        """Return the bias by distance (query minus key) from -reach to reach: [N, 2 * reach + 1]."""


Kernel = Callable[[Tensor, Packed, Bias | None, float, int | None], Tensor]


def tiles(qkv_T3NK: Tensor, batch: Packed, bias: Bias | None, dropout: float, window: int | None) -> Tensor:
    """Run our own kernel: a tile holds neighbouring tokens, of one text or several."""
    from munjang.nn import cuda

    by_distance = None if bias is None else bias.by_distance(batch.max_length)
    return cuda.attend(qkv_T3NK.contiguous(), *batch.bounds, batch.max_length, by_distance, window)


def tiles_with_gradient(
    qkv_T3NK: Tensor, batch: Packed, bias: Bias | None, dropout: float, window: int | None
) -> Tensor:
    """Run our own kernel for training: such tiles with dropout and a gradient."""
    from munjang.nn import cuda_training

    return cuda_training.attend(qkv_T3NK, *batch.bounds, batch.max_length, dropout)


@cache
def _varlen_takes_window() -> bool:
    from torch.nn.attention.varlen import varlen_attn

    return "window_size" in inspect.signature(varlen_attn).parameters  # torch 2.10 has is_causal instead


def varlen(qkv_T3NK: Tensor, batch: Packed, bias: Bias | None, dropout: float, window: int | None) -> Tensor:
    """Run flash attention by cumulative lengths."""
    from torch.nn.attention.varlen import varlen_attn

    query_TNK, key_TNK, value_TNK = qkv_T3NK.unbind(1)
    starts, longest = batch.starts_B, batch.max_length
    args = (query_TNK, key_TNK, value_TNK, starts, starts, longest, longest)
    out = varlen_attn(*args) if window is None else varlen_attn(*args, window_size=(window, window))
    assert isinstance(out, Tensor)
    return out


def jagged(qkv_T3NK: Tensor, batch: Packed, bias: Bias | None, dropout: float, window: int | None) -> Tensor:
    """Run SDPA over a jagged nested tensor: memory-efficient attention by cumulative lengths, in fp32 too."""
    starts_B, shortest, longest = batch.starts_B.long(), int(batch.lengths.min()), batch.max_length

    def nested(values_TNK: Tensor) -> Tensor:
        whole = torch.nested.nested_tensor_from_jagged(
            values_TNK.contiguous(), starts_B, min_seqlen=shortest, max_seqlen=longest
        )
        return whole.transpose(1, 2)

    query, key, value = (nested(values) for values in qkv_T3NK.unbind(1))
    out = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    return out.transpose(1, 2).values()


def runs(qkv_T3NK: Tensor, batch: Packed, bias: Bias | None, dropout: float, window: int | None) -> Tensor:
    """Run SDPA over each run of equally long texts, which is a rectangle."""
    heads, width = qkv_T3NK.shape[2:]
    parts, first = [], 0
    for start, texts, length in batch.runs:
        rectangle = qkv_T3NK[start : start + texts * length].view(texts, length, 3, heads, width)
        query, key, value = rectangle.permute(2, 0, 3, 1, 4).unbind(0)
        mask = _mask(length, bias, window, qkv_T3NK)
        if batch.seen is not None:
            mask = _hide(mask, batch.seen[first : first + texts], length, qkv_T3NK)
            first += texts
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        parts.append(out.transpose(1, 2).reshape(texts * length, heads, width))
    return torch.cat(parts)


def _mask(length: int, bias: Bias | None, window: int | None, like: Tensor) -> Tensor | None:
    mask = None if bias is None else bias(length).to(like.dtype)
    if window is None or length <= window + 1:
        return mask
    position = torch.arange(length, device=like.device)
    far = (position[:, None] - position[None, :]).abs() > window
    hidden = torch.zeros(length, length, dtype=like.dtype, device=like.device).masked_fill_(far, float("-inf"))
    return hidden if mask is None else mask + hidden


def _hide(mask: Tensor | None, seen: Ints, length: int, like: Tensor) -> Tensor:
    """Hide the tokens behind the seen ones from every token: [B, 1 or N, 1 or L, L]."""
    is_hidden = np.arange(length) >= np.maximum(seen, 1)[:, None]  # attention over nothing would be NaN
    hidden_BL = torch.from_numpy(np.where(is_hidden, -np.inf, 0)).to(like.device, like.dtype)[:, None, None]
    return hidden_BL if mask is None else mask + hidden_BL


# flash attention gives every text a tile of its own: longer ones fill it (docs/log.md, 2026-11-15)
MAX_TILED_LENGTH = 256
KERNELS: list[tuple[Kernel, Callable[[Demand], bool]]] = [
    (
        tiles,
        lambda need: (
            need.device == "cuda"
            and has_triton()
            and need.dtype in (torch.bfloat16, torch.float16)
            and need.head_width in (16, 32, 64, 128)
            and need.dropout == 0
            and not need.has_gradient
            and (need.has_bias or need.max_length <= MAX_TILED_LENGTH)
        ),
    ),
    (
        tiles_with_gradient,
        lambda need: (
            need.device == "cuda"
            and has_triton()
            and need.dtype in (torch.bfloat16, torch.float16)
            and need.head_width in (16, 32, 64, 128)
            and need.has_gradient
            and not need.has_bias
            and need.window is None
            and (need.dropout > 0 or need.max_length <= MAX_TILED_LENGTH)  # else nothing faster knows dropout
        ),
    ),
    (
        varlen,
        lambda need: (
            need.device == "cuda"
            and need.dtype in (torch.bfloat16, torch.float16)
            and need.head_width % 8 == 0
            and not need.has_bias
            and need.dropout == 0
            and (need.window is None or _varlen_takes_window())
        ),
    ),
    (
        jagged,
        # under dropout training with it learned less than it should (docs/log.md, 2026-11-16)
        lambda need: need.device == "cuda" and not need.has_bias and need.window is None and need.dropout == 0,
    ),
    (runs, lambda need: True),
]


def choose(need: Demand) -> Kernel:
    """Return the first kernel of the table that meets the requirements."""
    return next(kernel for kernel, fits in KERNELS if fits(need))


def attend(
    qkv_T3NK: Tensor, batch: Packed, bias: Bias | None = None, dropout: float = 0.0, window: int | None = None
) -> Tensor:
    """Compute the attention of every token to the tokens of its own text: [T, N, K]."""
    if not batch.num_tokens:
        return qkv_T3NK[:, 0]
    if batch.seen is not None:
        return runs(qkv_T3NK, batch, bias, dropout, window)
    need = Demand(
        *(qkv_T3NK.device.type, qkv_T3NK.dtype, qkv_T3NK.shape[-1], bias is not None, dropout, window),
        *(batch.max_length, torch.is_grad_enabled()),
    )
    return choose(need)(qkv_T3NK, batch, bias, dropout, window)


def attend_one(qkv_T3NK: Tensor, num_tokens: int, bias: Callable[[int], Tensor] | None) -> Tensor:
    """Compute `attend` for one text on a CPU, already padded: rows past `num_tokens` are masked."""
    query, key, value = qkv_T3NK.permute(1, 2, 0, 3)[:, None].unbind(0)
    mask = None if bias is None else bias(len(qkv_T3NK))[..., :num_tokens].to(query.dtype)
    out = F.scaled_dot_product_attention(query, key[:, :, :num_tokens], value[:, :, :num_tokens], attn_mask=mask)
    return out[0].transpose(0, 1)
