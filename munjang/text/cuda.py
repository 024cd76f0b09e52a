"""Kernels for NVIDIA GPUs that tokenize, in Triton: texts to spans, spans to ids, ids to rows with special tokens.

Imported only where a GPU is used; tests follow them on a CPU with TRITON_INTERPRET=1. Whole numbers alone, and one
thread for each, so results never depend on the order of threads.

C characters of a window, B texts, T tokens.
"""

import os
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

# texts of a program, and their characters or tokens at a time; followed step by step, a wide tile takes no longer
ROWS, COLUMNS = (512, 64) if os.environ.get("TRITON_INTERPRET") == "1" else (1, 128)


@triton.jit
def _texts(starts, num_texts, rows: tl.constexpr):
    """Return the texts of this program, and where each begins and ends."""
    text = tl.program_id(0) * rows + tl.arange(0, rows)
    begin = tl.load(starts + text, mask=text < num_texts, other=0)
    return text, begin, tl.load(starts + text + 1, mask=text < num_texts, other=0)


@triton.jit(do_not_specialize=["num_texts", "bits"], do_not_specialize_on_alignment=["status"])
def cut(num_texts, codes, bits, starts, kinds, cuts, status, rows: tl.constexpr, columns: tl.constexpr):
    """Mark every space between two safe characters of one text.

    Kinds of characters: 1 safe, 2 not, 0 new, 3 new and asked for here.
    """
    _text, begin, end = _texts(starts, num_texts, rows)
    for first in range(0, tl.max(end - begin), columns):
        at = begin[:, None] + first + tl.arange(0, columns)[None, :]
        is_here = at < end[:, None]
        is_inside = is_here & (at > begin[:, None]) & (at < end[:, None] - 1)
        is_inside = is_inside & (tl.load(codes + at, mask=is_inside, other=0) == 0x20)
        before = tl.load(codes + at - 1, mask=is_inside, other=0).to(tl.int32) & bits
        behind = tl.load(codes + at + 1, mask=is_inside, other=0).to(tl.int32) & bits
        kind_before = tl.load(kinds + before, mask=is_inside, other=2)
        kind_behind = tl.load(kinds + behind, mask=is_inside, other=2)
        tl.store(cuts + at, (kind_before == 1) & (kind_behind == 1), mask=is_here)
        tl.store(kinds + before, 3, mask=kind_before == 0)
        tl.store(kinds + behind, 3, mask=kind_behind == 0)
        tl.store(status + 1 + at * 0, 1, mask=(kind_before % 3 == 0) | (kind_behind % 3 == 0))


@triton.jit(
    do_not_specialize=["num_texts", "bits", "num_values", "mask"],
    do_not_specialize_on_alignment=["lengths", "status"],
)
def find(
    num_texts,
    codes,
    bits,
    starts,
    cuts,
    values,
    num_values,
    powers,
    slots,
    mask,
    hashes,
    second_hashes,
    id_counts,
    entries,
    lengths,
    status,
    unknown,
    capacity,
    keeps_space: tl.constexpr,
    longest: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """Find the entry of each span and count the ids of each text; spans are hashed as spans.py does."""
    text, begin_B, end_B = _texts(starts, num_texts, rows)
    begin, end = begin_B[:, None], end_B[:, None]
    num_ids = tl.zeros([rows], tl.int32)
    goes_whole = tl.zeros([rows], tl.int32)
    for first in range(0, tl.max(end_B - begin_B), columns):
        at = begin + first + tl.arange(0, columns)[None, :]
        is_here = at < end
        is_first = at == begin
        space = at if keeps_space else at - 1  # in front of a span
        is_begin = is_first | (tl.load(cuts + space, mask=is_here & ~is_first, other=0) > 0)
        is_begin = is_here & is_begin
        # follow each span to its end: the next cut, or that of its text
        is_open = is_begin
        size = tl.zeros([rows, columns], tl.int32)
        hash_ = tl.zeros([rows, columns], tl.int64)
        second = tl.zeros([rows, columns], tl.int64)
        step = 0
        while (step <= longest) & (tl.max(is_open.to(tl.int32)) > 0):
            place = at + step
            is_open = is_open & (place < end)
            is_open = is_open & (tl.load(cuts + place, mask=is_open & (place > at), other=0) == 0)
            code = tl.load(codes + place, mask=is_open, other=0).to(tl.int32) & bits
            hash_ += tl.load(values + code, mask=is_open, other=0) * tl.load(powers + step)
            second += tl.load(values + num_values + code, mask=is_open, other=0) * tl.load(powers + longest + 1 + step)
            size += is_open.to(tl.int32)
            step += 1
        hash_ = hash_ ^ ((hash_ >> 31) & 0x1FFFFFFFF)  # int64 shifts its sign in
        second = ((second << 7) | ((second >> 57) & 127)) ^ size.to(tl.int64)
        is_short = is_begin & (size <= longest)
        entry = tl.full([rows, columns], -1, tl.int32)
        is_open, slot = is_short, hash_ & mask
        while tl.max(is_open.to(tl.int32)) > 0:  # the slots from that of each hash on, up to an empty one
            shown = tl.load(slots + slot, mask=is_open, other=-1)
            is_open = is_open & (shown >= 0)
            is_found = is_open & (tl.load(hashes + shown, mask=is_open, other=0) == hash_)
            entry = tl.where(is_found, shown, entry)
            is_open = is_open & ~is_found
            slot = (slot + 1) & mask
        is_known = entry >= 0
        is_same = is_known & (tl.load(second_hashes + entry, mask=is_known, other=0) == second)
        count = tl.load(id_counts + entry, mask=is_same, other=-1)
        is_kept, is_unknown = count >= 0, is_short & ~is_known
        tl.store(entries + at, tl.where(is_kept, entry, -1), mask=is_here)
        num_ids += tl.sum(tl.where(is_kept, count, 0), 1)
        goes_whole = tl.maximum(goes_whole, tl.max((is_begin & ~is_kept).to(tl.int32), 1))
        number = tl.atomic_add(status + at * 0, 1, mask=is_unknown)
        is_told = is_unknown & (number < capacity)
        tl.store(unknown + number * 4, hash_, mask=is_told)
        tl.store(unknown + number * 4 + 1, second, mask=is_told)
        tl.store(unknown + number * 4 + 2, at, mask=is_told)
        tl.store(unknown + number * 4 + 3, size.to(tl.int64), mask=is_told)
    tl.store(lengths + text, tl.where(goes_whole > 0, -1, num_ids), mask=text < num_texts)


@triton.jit(do_not_specialize=["num_texts"])
def spell(
    num_texts,
    starts,
    entries,
    places,
    id_starts,
    id_counts,
    ids,
    flat,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """Write the ids of each text from its place in `flat` on; none where that is below 0."""
    text, begin, end = _texts(starts, num_texts, rows)
    place = tl.load(places + text, mask=text < num_texts, other=-1)
    end = tl.where(place < 0, begin, end)
    for first in range(0, tl.max(end - begin), columns):
        at = begin[:, None] + first + tl.arange(0, columns)[None, :]
        entry = tl.load(entries + at, mask=at < end[:, None], other=-1)
        count = tl.load(id_counts + entry, mask=entry >= 0, other=0)
        source = tl.load(id_starts + entry, mask=entry >= 0, other=0)
        target = place[:, None] + tl.cumsum(count, 1) - count
        for step in range(tl.max(count)):
            value = tl.load(ids + source + step, mask=step < count, other=0)
            tl.store(flat + target + step, value, mask=step < count)
        place += tl.sum(count, 1)


@triton.jit(do_not_specialize=["num_texts", "num_tokens", "num_before", "num_between", "num_behind", "uncounted"])
def assemble(
    num_texts,
    numbers,
    flat,
    tokens,
    num_tokens,
    num_before,
    num_between,
    num_behind,
    first_type,
    second_type,
    uncounted,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    """Put special tokens before, between and behind two sides of each text; write ids, positions and types.

    `numbers`: where texts begin, where both sides are and how much is kept of them, the order, special ids and types.
    """
    text, begin, end = _texts(numbers, num_texts, rows)
    sides, special = numbers + num_texts + 1, numbers + 6 * num_texts + 1
    source_a = tl.load(sides + text, mask=text < num_texts, other=0)[:, None]
    kept_a = tl.load(sides + num_texts + text, mask=text < num_texts, other=0)[:, None]
    source_b = tl.load(sides + 2 * num_texts + text, mask=text < num_texts, other=0)[:, None]
    kept_b = tl.load(sides + 3 * num_texts + text, mask=text < num_texts, other=0)[:, None]
    end_a, begin_b = num_before + kept_a, num_before + kept_a + num_between
    end_b = begin_b + kept_b
    num_uncounted = tl.zeros([rows], tl.int64)
    for first in range(0, tl.max(end - begin), columns):
        place = first + tl.arange(0, columns)[None, :]
        is_here = place < (end - begin)[:, None]
        is_a, is_b = (place >= num_before) & (place < end_a), (place >= begin_b) & (place < end_b)
        source = tl.where(is_a, source_a + place - num_before, source_b + place - begin_b)
        which = place - tl.where(place < end_a, 0, kept_a) - tl.where(place < end_b, 0, kept_b)
        is_special = is_here & ~is_a & ~is_b
        value = tl.load(flat + source, mask=is_here & (is_a | is_b), other=0).to(tl.int64)
        value += tl.load(special + which, mask=is_special, other=0)
        num_special = num_before + num_between + num_behind
        kind = tl.load(special + num_special + which, mask=is_special, other=0)
        kind += tl.where(is_a, first_type, tl.where(is_b, second_type, 0))
        is_uncounted = is_here & (value == uncounted)
        counted = place - num_uncounted[:, None] - tl.cumsum(is_uncounted.to(tl.int64), 1)
        num_uncounted += tl.sum(is_uncounted.to(tl.int64), 1)
        target = tokens + begin[:, None] + place
        tl.store(target, value, mask=is_here)
        tl.store(target + num_tokens, tl.where(is_uncounted, -1, counted), mask=is_here)
        tl.store(target + 2 * num_tokens, kind, mask=is_here)


@triton.jit(do_not_specialize=["num_texts"])
def bound(num_texts, starts, begins, ends, rows: tl.constexpr, columns: tl.constexpr):
    """Tell every token where its text begins and ends."""
    _text, begin, end = _texts(starts, num_texts, rows)
    for first in range(0, tl.max(end - begin), columns):
        at = begin[:, None] + first + tl.arange(0, columns)[None, :]
        is_here = at < end[:, None]
        tl.store(begins + at, begin[:, None] + at * 0, mask=is_here)
        tl.store(ends + at, end[:, None] + at * 0, mask=is_here)


@triton.jit(do_not_specialize=["num_entries", "first"])
def show(num_entries, places, slots, first, rows: tl.constexpr, columns: tl.constexpr):
    """Let the slots of a table show so many entries from the first one on."""
    entry = tl.program_id(0) * rows + tl.arange(0, rows)
    place = tl.load(places + first + entry, mask=entry < num_entries, other=0)
    tl.store(slots + place, first + entry, mask=entry < num_entries)


def run(kernel: Any, num_texts: int, *given: Tensor | int) -> None:
    """Start a kernel with a program for each text, or for each few of them."""
    if num_texts:
        kernel[(triton.cdiv(num_texts, ROWS),)](num_texts, *given, rows=ROWS, columns=COLUMNS, num_warps=1)
