"""Kernels for NVIDIA GPUs, in Triton: inference only, half precision in and out, fp32 inside.

T tokens of the whole batch, D width, N heads, K width of a head. Imported only where a GPU is used; elsewhere they can
be followed step by step with TRITON_INTERPRET=1 (tests/nn/test_cuda.py).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

LOG2_E = 1.4426950408889634
NORM_ROWS = 4  # rows of a norm per program
NUM_ROUNDS = tl.constexpr(7)  # of Philox: the fewest that pass every test of randomness; Triton takes 10
SUM_ROWS = 16  # tokens of a text that are added up at a time
# Longest text, and the queries and keys of a tile and its warps: the best of nine on an H200 (docs/log.md, 2026-11-19)
ATTENTION_TILES = ((64, (32, 16, 1)), (1 << 30, (64, 32, 2)))


@triton.jit
def load_queries(base, begin, query_at, is_query, row: tl.constexpr):
    """Load the queries of a tile, and the first token of the text of each."""
    query = tl.load(base + query_at[:, None].to(tl.int64) * row, mask=is_query[:, None], other=0.0)
    return query, tl.load(begin + query_at, mask=is_query, other=-1)


@triton.jit
def load_keys(base, begin, key_at, is_key, row: tl.constexpr):
    """Load the keys and values of a tile, and the first token of the text of each."""
    place = base + key_at[:, None].to(tl.int64) * row
    key = tl.load(place + row // 3, mask=is_key[:, None], other=0.0)
    value = tl.load(place + row // 3 * 2, mask=is_key[:, None], other=0.0)
    return key, value, tl.load(begin + key_at, mask=is_key, other=-2)


@triton.jit
def tile(qkv, begin, end, num_tokens, width: tl.constexpr, size: tl.constexpr):
    """Return head, tokens, columns and pointers of this program, and the first and last token that its texts have.

    Heads come first in the order of programs: those that run together read whole rows.
    """
    first = tl.program_id(1) * size
    head = tl.program_id(0)
    column = tl.arange(0, width)
    stop = tl.load(end + tl.minimum(first + size, num_tokens) - 1)
    return head, first + tl.arange(0, size), column, qkv + head * width + column[None, :], tl.load(begin + first), stop


@triton.jit
def soften(score, largest, total):
    """Return weights of one more tile of keys in a running softmax, the factor of earlier ones, and its new state."""
    higher = tl.maximum(largest, tl.max(score, 1))
    safe = tl.where(higher == float("-inf"), 0.0, higher)  # no key of its own text yet
    weight = tl.exp2(score - safe[:, None])
    shrink = tl.exp2(largest - safe)
    return weight, shrink, higher, total * shrink + tl.sum(weight, 1)


@triton.jit
def is_kept(seed, head, query_at, key_at, begin, span, share):
    """Draw the dropout of a tile of attention weights; the same seed gives the same mask."""
    place = query_at[:, None] * span + (key_at[None, :] - begin[:, None])
    return tl.rand(seed + head, place, NUM_ROUNDS) >= share


@triton.jit(do_not_specialize=["num_tokens", "window", "reach", "seed", "span"])
def attend_tiles(
    qkv,
    begin,
    end,
    bias,
    out,
    sums_of,
    num_tokens,
    scale,
    window,
    reach,
    seed,
    span,
    share,
    num_heads: tl.constexpr,
    width: tl.constexpr,
    has_bias: tl.constexpr,
    has_window: tl.constexpr,
    has_dropout: tl.constexpr,
    has_gradient: tl.constexpr,
    size: tl.constexpr,
    step: tl.constexpr,
):
    """Attend from `size` neighbouring queries of one head, of any texts, to `step` keys of these texts at a time."""
    row: tl.constexpr = 3 * num_heads * width
    head, query_at, column, base, start, stop = tile(qkv, begin, end, num_tokens, width, size)
    is_query = query_at < num_tokens
    query, own = load_queries(base, begin, query_at, is_query, row)
    largest = tl.full([size], float("-inf"), tl.float32)
    total = tl.zeros([size], tl.float32)
    sums = tl.zeros([size, width], tl.float32)
    for at in range(start, stop, step):
        key_at = at + tl.arange(0, step)
        is_key = key_at < stop
        key, value, theirs = load_keys(base, begin, key_at, is_key, row)
        score = tl.dot(query, tl.trans(key)) * scale
        distance = query_at[:, None] - key_at[None, :]
        is_seen = own[:, None] == theirs[None, :]
        if has_bias:
            nearby = tl.minimum(tl.maximum(distance, -reach), reach) + reach
            score += tl.load(bias + head * (2 * reach + 1) + nearby, mask=is_seen, other=0.0) * 1.4426950408889634
        if has_window:
            is_seen = is_seen & (distance <= window) & (distance >= -window)
        score = tl.where(is_seen, score, float("-inf"))
        weight, shrink, largest, total = soften(score, largest, total)
        if has_dropout:
            weight = tl.where(is_kept(seed, head, query_at, key_at, own, span, share), weight / (1 - share), 0.0)
        sums = sums * shrink[:, None] + tl.dot(weight.to(value.dtype), value)
    total = tl.where(total == 0.0, 1.0, total)
    sums = sums / total[:, None]
    target = out + query_at[:, None].to(tl.int64) * (num_heads * width) + head * width + column[None, :]
    tl.store(target, sums.to(out.dtype.element_ty), mask=is_query[:, None])
    if has_gradient:
        tl.store(sums_of + query_at * num_heads + head, largest + tl.log2(total), mask=is_query)


@triton.jit
def _norm(x, at, is_in, weight, bias, width, eps, has_bias: tl.constexpr):
    mean = tl.sum(x, 1) / width
    centred = tl.where(is_in, x - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1) / width + eps)
    x = centred * scale[:, None] * tl.load(weight + at, mask=at < width, other=0.0).to(tl.float32)[None, :]
    if has_bias:
        x += tl.load(bias + at, mask=at < width, other=0.0).to(tl.float32)[None, :]
    return x, mean, scale


@triton.jit(do_not_specialize=["num_rows", "seed"])
def add_norm_rows(
    x,
    onto,
    weight,
    bias,
    out,
    summed,
    means,
    scales,
    num_rows,
    width,
    eps,
    seed,
    share,
    has_bias: tl.constexpr,
    has_dropout: tl.constexpr,
    has_gradient: tl.constexpr,
    rows: tl.constexpr,
    block: tl.constexpr,
):
    """Compute the norm of a residual plus an update that goes through dropout."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    at = tl.arange(0, block)
    is_row = row < num_rows
    is_in = is_row[:, None] & (at < width)[None, :]
    place = row[:, None].to(tl.int64) * width + at[None, :]
    value = tl.load(x + place, mask=is_in, other=0.0).to(tl.float32)
    if has_dropout:
        is_in_x = tl.rand(seed, row[:, None] * width + at[None, :], NUM_ROUNDS) >= share
        value = tl.where(is_in_x, value / (1 - share), 0.0)
    value += tl.load(onto + place, mask=is_in, other=0.0).to(tl.float32)
    if has_gradient:
        rounded = value.to(summed.dtype.element_ty)  # what the gradient will see
        tl.store(summed + place, rounded, mask=is_in)
        value = rounded.to(tl.float32)
    value, mean, scale = _norm(value, at, is_in, weight, bias, width, eps, has_bias)
    tl.store(out + place, value.to(out.dtype.element_ty), mask=is_in)
    if has_gradient:
        tl.store(means + row, mean, mask=is_row)
        tl.store(scales + row, scale, mask=is_row)


@triton.jit(
    do_not_specialize=["num_rows"],
    do_not_specialize_on_alignment=["ids", "positions", "types"],  # slices of a row, which begin anywhere
)
def _embed_norm(
    ids,
    positions,
    types,
    word,
    position,
    segment,
    weight,
    bias,
    out,
    num_rows,
    width,
    offset,
    eps,
    has_position: tl.constexpr,
    has_segment: tl.constexpr,
    has_types: tl.constexpr,
    has_bias: tl.constexpr,
    rows: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    at = tl.arange(0, block)
    is_row = row < num_rows
    is_in = is_row[:, None] & (at < width)[None, :]
    which = tl.load(ids + row, mask=is_row, other=0)
    value = tl.load(word + which[:, None] * width + at[None, :], mask=is_in, other=0.0).to(tl.float32)
    if has_position:
        which = tl.load(positions + row, mask=is_row, other=0) + offset
        value += tl.load(position + which[:, None] * width + at[None, :], mask=is_in, other=0.0).to(tl.float32)
    if has_segment:
        which = tl.load(types + row, mask=is_row, other=0) if has_types else row * 0
        value += tl.load(segment + which[:, None] * width + at[None, :], mask=is_in, other=0.0).to(tl.float32)
    value, _mean, _scale = _norm(value, at, is_in, weight, bias, width, eps, has_bias)
    tl.store(out + row[:, None].to(tl.int64) * width + at[None, :], value.to(out.dtype.element_ty), mask=is_in)


@triton.jit
def _average(x, starts, out, width, rows: tl.constexpr, block: tl.constexpr):
    text = tl.program_id(0)
    at = tl.arange(0, block)
    begin = tl.load(starts + text)
    end = tl.load(starts + text + 1)
    total = tl.zeros([block], tl.float32)
    for first in range(begin, end, rows):
        row = first + tl.arange(0, rows)
        is_in = (row < end)[:, None] & (at < width)[None, :]
        value = tl.load(x + row[:, None].to(tl.int64) * width + at[None, :], mask=is_in, other=0.0)
        total += tl.sum(value.to(tl.float32), 0)
    tl.store(out + text.to(tl.int64) * width + at, total / tl.maximum(end - begin, 1), mask=at < width)


@triton.jit
def _unit(x, out, width, block: tl.constexpr):
    at = tl.arange(0, block)
    place = tl.program_id(0).to(tl.int64) * width + at
    value = tl.load(x + place, mask=at < width, other=0.0)
    length = tl.sqrt(tl.sum(value * value, 0))
    tl.store(out + place, value / tl.maximum(length, 1e-12), mask=at < width)


@triton.jit(do_not_specialize_on_alignment=["order"])
def _scatter(x, order, out, num_bad, width, block: tl.constexpr, counts_bad: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    value = tl.load(x + row * width + at, mask=at < width, other=0.0)
    tl.store(out + tl.load(order + row) * width + at, value, mask=at < width)
    if counts_bad:
        is_bad = (tl.abs(value) < float("inf")) == 0
        tl.atomic_add(num_bad, 1, mask=tl.max(is_bad.to(tl.int32), 0) > 0)


def attend(
    qkv_T3NK: Tensor,
    begin_T: Tensor,
    end_T: Tensor,
    max_length: int,
    bias_NR: Tensor | None = None,
    window: int | None = None,
) -> Tensor:
    """Attend within each text: [T, N, K]. `bias_NR`: by distance (query minus key), from -R//2 to R//2."""
    num_tokens, _, num_heads, width = qkv_T3NK.shape
    out_TNK = torch.empty_like(qkv_T3NK[:, 0])
    size, step, warps = next(tile for longest, tile in ATTENTION_TILES if max_length <= longest)
    attend_tiles[(num_heads, triton.cdiv(num_tokens, size))](
        *(qkv_T3NK, begin_T, end_T, out_TNK if bias_NR is None else bias_NR, out_TNK, out_TNK, num_tokens),
        *(LOG2_E / width**0.5, window or 0, 0 if bias_NR is None else bias_NR.shape[1] // 2, 0, 0, 0.0),
        *(num_heads, width, bias_NR is not None, window is not None, False, False, size, step),
        num_warps=warps,
    )
    return out_TNK


def add_norm(x_TD: Tensor, onto_TD: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Compute the norm of a sum in one pass."""
    num_rows, width = x_TD.shape
    out_TD = torch.empty_like(x_TD)
    norm_bias = norm.weight if norm.bias is None else norm.bias
    add_norm_rows[(triton.cdiv(num_rows, NORM_ROWS),)](
        *(x_TD, onto_TD, norm.weight, norm_bias, out_TD, out_TD, out_TD, out_TD, num_rows, width, norm.eps, 0, 0.0),
        *(norm.bias is not None, False, False, NORM_ROWS, triton.next_power_of_2(width)),
    )
    return out_TD


def embed_norm(
    ids_T: Tensor,
    positions_T: Tensor,
    types_T: Tensor | None,
    tables: tuple[nn.Embedding, nn.Embedding | None, nn.Embedding | None],
    offset: int,
    norm: nn.LayerNorm,
) -> Tensor:
    """Add word, position and segment embeddings and normalize the sum in one pass."""
    word, position, segment = tables
    num_rows, width = len(ids_T), word.weight.shape[1]
    out_TD = torch.empty(num_rows, width, dtype=word.weight.dtype, device=ids_T.device)
    weights = [word.weight if table is None else table.weight for table in tables]
    _embed_norm[(triton.cdiv(num_rows, NORM_ROWS),)](
        *(ids_T, positions_T, ids_T if types_T is None else types_T, *weights),
        *(norm.weight, norm.weight if norm.bias is None else norm.bias, out_TD, num_rows, width, offset, norm.eps),
        *(position is not None, segment is not None, types_T is not None, norm.bias is not None),
        *(NORM_ROWS, triton.next_power_of_2(width)),
    )
    return out_TD


def average(tokens_TD: Tensor, starts_B: Tensor) -> Tensor:
    """Return the mean of each text's tokens in fp32, added up in their order: [B, D]."""
    num_texts, width = len(starts_B) - 1, tokens_TD.shape[1]
    out_BD = torch.empty(num_texts, width, dtype=torch.float32, device=tokens_TD.device)
    if num_texts:
        _average[(num_texts,)](tokens_TD, starts_B, out_BD, width, SUM_ROWS, triton.next_power_of_2(width))
    return out_BD


def unit(x_BD: Tensor) -> Tensor:
    """Scale rows to unit length."""
    out_BD = torch.empty_like(x_BD)
    if len(x_BD):
        _unit[(len(x_BD),)](x_BD, out_BD, x_BD.shape[1], triton.next_power_of_2(x_BD.shape[1]))
    return out_BD


def scatter(x_BD: Tensor, order_B: Tensor, out_RD: Tensor, num_bad: Tensor | None = None) -> None:
    """Put each row where `order_B` says; add to `num_bad` how many are not numbers."""
    with torch.cuda.device_of(x_BD):
        _scatter[(len(x_BD),)](
            *(x_BD, order_B, out_RD, order_B if num_bad is None else num_bad, x_BD.shape[1]),
            *(triton.next_power_of_2(x_BD.shape[1]), num_bad is not None),
        )
