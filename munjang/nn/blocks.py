"""Attention in bf16 on a CPU that has it: texts of similar length in blocks, by batched products of oneDNN.

T tokens of the whole batch, B texts of a block, N heads, K width of a head, L length of a block.

torch's fused attention takes one text and head at a time and is far from this CPU's speed on short texts. Here scores,
weights and sums are three passes over a whole block:
- texts are rounded up to a common length. What is added has values and counts of zero, so that it needs no mask;
- weights are powers of two of the scores, without their largest taken off first, and a column of ones behind the
  values adds them up in the product itself. Texts with scores too large for it, which the sums show, go another way;
- oneDNN makes a kernel for every shape it meets, in milliseconds: lengths go in steps, texts in powers of two.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.nn import attention
from munjang.text.packing import Packed

LENGTH_MULTIPLE = 16  # lengths are padded to a multiple of what a vector instruction takes
MAX_BLOCK_TOKENS = 512  # the scores of a block stay in the cache (docs/log.md, 2026-11-16)
MAX_BLOCK_LENGTH = 512  # scores of longer texts take too much memory; torch's own attention stores none
MAX_SHARED_LENGTH = 128  # a longer text has a block of its own: oneDNN adds in another order for two of them
NUM_SUM_COLUMNS = 16  # columns of ones after the values, the first of which is read
MAX_SUM, MIN_SUM = 2.0**40, 2.0**-40  # beyond these scores exceed 27, for which bf16 is too coarse


@dataclass
class Part:
    """Texts of similar length, as runs of equal ones: (first token, first row in the block, texts, length)."""

    length: int
    texts: int = 0
    runs: list[tuple[int, int, int, int]] = field(default_factory=list)


def parts_of(batch: Packed) -> list[Part]:
    """Cut a batch into blocks."""
    parts: list[Part] = []
    for start, texts, length in batch.runs:
        rounded = -(-length // LENGTH_MULTIPLE) * LENGTH_MULTIPLE
        most = 1 if rounded > MAX_SHARED_LENGTH else 1 << (MAX_BLOCK_TOKENS // rounded).bit_length() - 1
        while texts:
            if not parts or parts[-1].length != rounded or parts[-1].texts == most:
                parts.append(Part(rounded))
            part = parts[-1]
            taken = min(texts, most - part.texts)
            part.runs.append((start, part.texts, taken, length))
            part.texts, texts, start = part.texts + taken, texts - taken, start + taken * length
    return parts


def attend(qkv_T3NK: Tensor, batch: Packed, bias: Callable[[int], Tensor] | None) -> Tensor:
    """Compute the attention of every token to its own text: [T, N, K]."""
    seen_TNK = torch.empty_like(qkv_T3NK[:, 0], memory_format=torch.contiguous_format)
    heads, width = seen_TNK.shape[1:]
    for part in parts_of(batch):
        if part.length > MAX_BLOCK_LENGTH:
            [(start, _, _, own)] = part.runs
            seen_TNK[start : start + own] = _attend_by_torch(qkv_T3NK[start : start + own], bias)
            continue
        query_key, value = _gather(qkv_T3NK, part)
        query, key = query_key.flatten(1, 2).unbind(0)
        weights = _weights(query, key, None if bias is None else bias(part.length))
        sums = torch.bmm(weights, value.flatten(0, 1)).view(value.shape)
        for start, first_row, texts, own in part.runs:
            totals = sums[first_row : first_row + texts, :, :own].transpose(1, 2)
            out = seen_TNK[start : start + texts * own].view(texts, own, heads, width)
            torch.div(totals[..., :width], totals[..., width : width + 1], out=out)
        if not _are_in_range(sums[..., width]):
            for start, first_row, texts, own in part.runs:
                for text in range(texts):
                    if not _are_in_range(sums[first_row + text, :, :own, width]):
                        here = slice(start + text * own, start + (text + 1) * own)
                        seen_TNK[here] = _attend_by_torch(qkv_T3NK[here], bias)
    return seen_TNK


def attend_one(qkv_T3NK: Tensor, num_tokens: int, bias: Callable[[int], Tensor] | None) -> Tensor:
    """Compute `attend` for one text, already padded; equal to the bit, as the length is that in a block."""
    rows, width = len(qkv_T3NK), qkv_T3NK.shape[3]
    length = -(-num_tokens // LENGTH_MULTIPLE) * LENGTH_MULTIPLE
    padded = F.pad(qkv_T3NK, (0, 0, 0, 0, 0, 0, 0, length - rows))  # or cut, if negative
    query, key, value = padded.permute(1, 2, 0, 3).contiguous().unbind(0)  # oneDNN adds in another order in strides
    weights = _weights(query, key, None if bias is None else bias(length))
    if num_tokens < length:
        weights[:, :, num_tokens:] = 0
    sums = torch.bmm(weights, torch.cat((value, value.new_ones(*value.shape[:2], NUM_SUM_COLUMNS)), -1))
    if _are_in_range(sums[:, :num_tokens, width]):
        seen_TNK = (sums[..., :width] / sums[..., width : width + 1]).transpose(0, 1)
    else:
        seen_TNK = _attend_by_torch(qkv_T3NK[:num_tokens], bias)
    # rows past the text are of no use, but they have to be numbers
    return F.pad(seen_TNK[:num_tokens], (0, 0, 0, 0, 0, rows - num_tokens))


def _attend_by_torch(qkv_T3NK: Tensor, bias: Callable[[int], Tensor] | None) -> Tensor:
    """Compute one text by torch's own attention, in fp32."""
    return attention.attend_one(qkv_T3NK.float(), len(qkv_T3NK), bias).to(qkv_T3NK.dtype)


def _weights(query: Tensor, key: Tensor, bias: Tensor | None) -> Tensor:
    """Return powers of the scores, not yet divided by their sum: [B * N, L, L]."""
    matrices, length, width = query.shape
    none = query.new_empty(1, 1, 1).expand(matrices, length, length)
    scores = torch.baddbmm(none, query, key.mT, beta=0, alpha=math.log2(math.e) / math.sqrt(width))
    if bias is not None:
        scores.view(-1, *bias.shape[1:]).add_(bias.to(scores.dtype), alpha=math.log2(math.e))
    return torch.exp2(scores, out=scores)


def _are_in_range(counts: Tensor) -> bool:
    """Return whether no score was too large, as the sums of weights show."""
    low, high = counts.aminmax()
    return float(low) > MIN_SUM and float(high) < MAX_SUM


def _gather(qkv_T3NK: Tensor, part: Part) -> tuple[Tensor, Tensor]:
    """Gather queries and keys [2, B, N, L, K], and values with a column of ones for the sums."""
    heads, width = qkv_T3NK.shape[2:]
    rounded = 1 << (part.texts - 1).bit_length()
    query_key = qkv_T3NK.new_empty(2, rounded, heads, part.length, width)
    value = qkv_T3NK.new_empty(rounded, heads, part.length, width + NUM_SUM_COLUMNS)
    for start, first_row, texts, length in part.runs:
        run = qkv_T3NK[start : start + texts * length].view(texts, length, 3, heads, width).permute(2, 0, 3, 1, 4)
        rows = slice(first_row, first_row + texts)
        query_key[:, rows, :, :length] = run[:2]
        value[rows, :, :length, :width] = run[2]
        value[rows, :, :length, width:] = 1
        if length < part.length:
            query_key[:, rows, :, length:] = 0
            value[rows, :, length:] = 0
    query_key[:, part.texts :] = 0
    value[part.texts :] = 1
    return query_key, value
