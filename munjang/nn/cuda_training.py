"""Kernels for training on NVIDIA GPUs, in Triton: half precision in and out, fp32 inside, with their gradients.

T tokens of the whole batch, D width, N heads, K width of a head. Dropout is drawn again for the gradient from the seed
that the forward pass took from torch, instead of being kept. Triton compiles a kernel anew for numbers that are 1 or a
multiple of 16, unless it is told which ones change with every batch.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from munjang.nn.cuda import (
    LOG2_E,
    NORM_ROWS,
    NUM_ROUNDS,
    add_norm_rows,
    attend_tiles,
    is_kept,
    load_keys,
    load_queries,
    tile,
)

TILE_SIZE, TILE_STEP, NUM_WARPS = 64, 32, 4  # queries (or keys) of a tile, and keys (or queries) at a time
NUM_PROGRAMS = 528  # for a norm's gradient: four for each multiprocessor of an H200


@triton.jit(do_not_specialize=["num_tokens", "seed", "span"])
def _backward_queries(
    qkv,
    begin,
    end,
    out,
    sums_of,
    slope,
    products,
    into,
    num_tokens,
    scale,
    seed,
    span,
    share,
    num_heads: tl.constexpr,
    width: tl.constexpr,
    has_dropout: tl.constexpr,
    size: tl.constexpr,
    step: tl.constexpr,
):
    """Compute the gradient of a tile of queries; store slope times output of each for the keys."""
    row: tl.constexpr = 3 * num_heads * width
    head, query_at, column, base, start, stop = tile(qkv, begin, end, num_tokens, width, size)
    is_query = query_at < num_tokens
    at_out = query_at[:, None].to(tl.int64) * (num_heads * width) + head * width + column[None, :]
    query, own = load_queries(base, begin, query_at, is_query, row)
    slope_q = tl.load(slope + at_out, mask=is_query[:, None], other=0.0)
    seen = tl.load(out + at_out, mask=is_query[:, None], other=0.0)
    product = tl.sum(slope_q.to(tl.float32) * seen.to(tl.float32), 1)
    tl.store(products + query_at * num_heads + head, product, mask=is_query)
    logs = tl.load(sums_of + query_at * num_heads + head, mask=is_query, other=0.0)
    gradient = tl.zeros([size, width], tl.float32)
    for at in range(start, stop, step):
        key_at = at + tl.arange(0, step)
        is_key = key_at < stop
        key, value, theirs = load_keys(base, begin, key_at, is_key, row)
        score = tl.dot(query, tl.trans(key)) * scale
        weight = tl.where(own[:, None] == theirs[None, :], tl.exp2(score - logs[:, None]), 0.0)
        by_weight = tl.dot(slope_q, tl.trans(value))
        if has_dropout:
            kept = is_kept(seed, head, query_at, key_at, own, span, share)
            by_weight = tl.where(kept, by_weight / (1 - share), 0.0)
        by_score = weight * (by_weight - product[:, None])
        gradient += tl.dot(by_score.to(key.dtype), key)
    target = into + query_at[:, None].to(tl.int64) * row + head * width + column[None, :]
    gradient = gradient * (scale * 0.6931471805599453)
    tl.store(target, gradient.to(into.dtype.element_ty), mask=is_query[:, None])


@triton.jit(do_not_specialize=["num_tokens", "seed", "span"])
def _backward_keys(
    qkv,
    begin,
    end,
    sums_of,
    slope,
    products,
    into,
    num_tokens,
    scale,
    seed,
    span,
    share,
    num_heads: tl.constexpr,
    width: tl.constexpr,
    has_dropout: tl.constexpr,
    size: tl.constexpr,
    step: tl.constexpr,
):
    """Compute the gradients of a tile of keys and their values."""
    row: tl.constexpr = 3 * num_heads * width
    head, key_at, column, base, start, stop = tile(qkv, begin, end, num_tokens, width, size)
    is_key = key_at < num_tokens
    key, value, theirs = load_keys(base, begin, key_at, is_key, row)
    by_key = tl.zeros([size, width], tl.float32)
    by_value = tl.zeros([size, width], tl.float32)
    for at in range(start, stop, step):
        query_at = at + tl.arange(0, step)
        is_query = query_at < stop
        at_out = query_at[:, None].to(tl.int64) * (num_heads * width) + head * width + column[None, :]
        query, own = load_queries(base, begin, query_at, is_query, row)
        slope_q = tl.load(slope + at_out, mask=is_query[:, None], other=0.0)
        product = tl.load(products + query_at * num_heads + head, mask=is_query, other=0.0)
        logs = tl.load(sums_of + query_at * num_heads + head, mask=is_query, other=0.0)
        score = tl.dot(query, tl.trans(key)) * scale
        weight = tl.where(own[:, None] == theirs[None, :], tl.exp2(score - logs[:, None]), 0.0)
        by_weight = tl.dot(slope_q, tl.trans(value))
        dropped = weight
        if has_dropout:
            kept = is_kept(seed, head, query_at, key_at, own, span, share)
            by_weight = tl.where(kept, by_weight / (1 - share), 0.0)
            dropped = tl.where(kept, weight / (1 - share), 0.0)
        by_value += tl.dot(tl.trans(dropped).to(slope_q.dtype), slope_q)
        by_score = weight * (by_weight - product[:, None])
        by_key += tl.dot(tl.trans(by_score).to(query.dtype), query)
    target = into + key_at[:, None].to(tl.int64) * row + head * width + column[None, :]
    by_key = by_key * (scale * 0.6931471805599453)
    tl.store(target + num_heads * width, by_key.to(into.dtype.element_ty), mask=is_key[:, None])
    tl.store(target + 2 * num_heads * width, by_value.to(into.dtype.element_ty), mask=is_key[:, None])


@triton.jit(do_not_specialize=["num_rows", "seed"])
def _add_norm_backward(
    slope,
    summed,
    means,
    scales,
    weight,
    by_x,
    by_onto,
    by_weight,
    by_bias,
    num_rows,
    width,
    seed,
    share,
    has_dropout: tl.constexpr,
    programs: tl.constexpr,
    rows: tl.constexpr,
    block: tl.constexpr,
):
    """Compute every `programs`-th group of rows, with sums for weight and bias of its own."""
    program = tl.program_id(0)
    at = tl.arange(0, block)
    is_column = at < width
    gain = tl.load(weight + at, mask=is_column, other=0.0).to(tl.float32)
    for_weight = tl.zeros([block], tl.float32)
    for_bias = tl.zeros([block], tl.float32)
    for group in range(program, tl.cdiv(num_rows, rows), programs):
        row = group * rows + tl.arange(0, rows)
        is_row = row < num_rows
        is_in = is_row[:, None] & is_column[None, :]
        place = row[:, None].to(tl.int64) * width + at[None, :]
        change = tl.load(slope + place, mask=is_in, other=0.0).to(tl.float32)
        value = tl.load(summed + place, mask=is_in, other=0.0).to(tl.float32)
        mean = tl.load(means + row, mask=is_row, other=0.0)
        scale = tl.load(scales + row, mask=is_row, other=0.0)
        normed = tl.where(is_in, (value - mean[:, None]) * scale[:, None], 0.0)
        for_weight += tl.sum(change * normed, 0)
        for_bias += tl.sum(change, 0)
        change = change * gain[None, :]
        level = tl.sum(change, 1) / width
        tilt = tl.sum(change * normed, 1) / width
        change = (change - level[:, None] - normed * tilt[:, None]) * scale[:, None]
        tl.store(by_onto + place, change.to(by_onto.dtype.element_ty), mask=is_in)
        if has_dropout:
            kept = tl.rand(seed, row[:, None] * width + at[None, :], NUM_ROUNDS) >= share
            change = tl.where(kept, change / (1 - share), 0.0)
            tl.store(by_x + place, change.to(by_x.dtype.element_ty), mask=is_in)
    tl.store(by_weight + program * width + at, for_weight, mask=is_column)
    tl.store(by_bias + program * width + at, for_bias, mask=is_column)


class Attend(torch.autograd.Function):
    """Attention within each text, with dropout of its weights."""

    @staticmethod
    def forward(ctx: Any, qkv_T3NK: Tensor, begin_T: Tensor, end_T: Tensor, span: int, share: float) -> Tensor:
        num_tokens, _, num_heads, width = qkv_T3NK.shape
        out_TNK = torch.empty_like(qkv_T3NK[:, 0])
        sums_TN = torch.empty(num_tokens, num_heads, dtype=torch.float32, device=qkv_T3NK.device)
        given = (num_tokens, LOG2_E / width**0.5, seed_from_torch() if share else 0, span, share)
        shape = (num_heads, width, share > 0, TILE_SIZE, TILE_STEP)
        grid = (num_heads, triton.cdiv(num_tokens, TILE_SIZE))
        num_tokens, scale, *dropout = given
        attend_tiles[grid](
            *(qkv_T3NK, begin_T, end_T, out_TNK, out_TNK, sums_TN, num_tokens, scale, 0, 0, *dropout),
            *(num_heads, width, False, False, share > 0, True, TILE_SIZE, TILE_STEP),
            num_warps=NUM_WARPS,
        )
        ctx.save_for_backward(qkv_T3NK, begin_T, end_T, out_TNK, sums_TN)
        ctx.given, ctx.shape, ctx.grid = given, shape, grid
        return out_TNK

    @staticmethod
    def backward(ctx: Any, slope_TNK: Tensor) -> tuple[Tensor | None, ...]:
        qkv_T3NK, begin_T, end_T, out_TNK, sums_TN = ctx.saved_tensors
        slope_TNK = slope_TNK.contiguous()
        into_T3NK, products_TN = torch.empty_like(qkv_T3NK), torch.empty_like(sums_TN)
        _backward_queries[ctx.grid](
            *(qkv_T3NK, begin_T, end_T, out_TNK, sums_TN, slope_TNK, products_TN, into_T3NK, *ctx.given, *ctx.shape),
            num_warps=NUM_WARPS,
        )
        _backward_keys[ctx.grid](
            *(qkv_T3NK, begin_T, end_T, sums_TN, slope_TNK, products_TN, into_T3NK, *ctx.given, *ctx.shape),
            num_warps=NUM_WARPS,
        )
        return into_T3NK, None, None, None, None


class AddNorm(torch.autograd.Function):
    """The norm of a residual plus an update that goes through dropout."""

    @staticmethod
    def forward(
        ctx: Any,
        x_TD: Tensor,
        onto_TD: Tensor,
        weight_D: Tensor,
        bias_D: Tensor | None,
        eps: float,
        share: float,
    ) -> Tensor:
        num_rows, width = x_TD.shape
        summed_TD, out_TD = torch.empty_like(x_TD), torch.empty_like(x_TD)
        means_T = torch.empty(num_rows, dtype=torch.float32, device=x_TD.device)
        scales_T = torch.empty_like(means_T)
        seed, block = seed_from_torch() if share else 0, triton.next_power_of_2(width)
        add_norm_rows[(triton.cdiv(num_rows, NORM_ROWS),)](
            *(x_TD, onto_TD, weight_D, weight_D if bias_D is None else bias_D, out_TD, summed_TD, means_T, scales_T),
            *(num_rows, width, eps, seed, share, bias_D is not None, share > 0, True, NORM_ROWS, block),
        )
        ctx.save_for_backward(summed_TD, means_T, scales_T, weight_D)
        ctx.seed, ctx.share, ctx.block, ctx.has_bias = seed, share, block, bias_D is not None
        return out_TD

    @staticmethod
    def backward(ctx: Any, slope_TD: Tensor) -> tuple[Tensor | None, ...]:
        summed_TD, means_T, scales_T, weight_D = ctx.saved_tensors
        num_rows, width = summed_TD.shape
        slope_TD = slope_TD.contiguous()
        by_onto_TD = torch.empty_like(summed_TD)
        by_x_TD = torch.empty_like(summed_TD) if ctx.share else by_onto_TD
        programs = min(NUM_PROGRAMS, triton.cdiv(num_rows, NORM_ROWS))
        parts_2PD = torch.empty(2, programs, width, dtype=torch.float32, device=slope_TD.device)
        _add_norm_backward[(programs,)](
            *(slope_TD, summed_TD, means_T, scales_T, weight_D, by_x_TD, by_onto_TD, parts_2PD[0], parts_2PD[1]),
            *(num_rows, width, ctx.seed, ctx.share, ctx.share > 0, programs, NORM_ROWS, ctx.block),
        )
        sums_2D = parts_2PD.sum(1).to(weight_D.dtype)
        return by_x_TD, by_onto_TD, sums_2D[0], sums_2D[1] if ctx.has_bias else None, None, None


def seed_from_torch() -> int:
    """Draw a seed from torch's generator on the host: reproducible, and without waiting for the device."""
    return int(torch.randint(2**31 - 64, ()))


def attend(qkv_T3NK: Tensor, begin_T: Tensor, end_T: Tensor, max_length: int, dropout: float) -> Tensor:
    """Attend within each text, with a gradient: [T, N, K]."""
    found: Tensor = Attend.apply(qkv_T3NK.contiguous(), begin_T, end_T, max_length, dropout)
    return found


def add_norm(x_TD: Tensor, onto_TD: Tensor, norm: nn.LayerNorm, dropout: float) -> Tensor:
    """Compute the norm of a sum in one pass, with a gradient; its first part goes through dropout."""
    found: Tensor = AddNorm.apply(
        x_TD.contiguous(), onto_TD.to(x_TD.dtype).contiguous(), norm.weight, norm.bias, norm.eps, dropout
    )
    return found
