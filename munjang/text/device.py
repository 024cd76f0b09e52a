"""Tokenizing on a device: texts or pairs to one row of ids there, longest first, ready to be cut into batches.

The host sees lengths alone, once for each window. The same functions run on a CPU, where tests compare them.

B texts or pairs, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from munjang.text.lookup.device import Bodies, cumulative
from munjang.text.tokenizer import Template, Tokenizer
from munjang.types import Bools, Ints


@dataclass(frozen=True)
class SortedRow:
    """Texts with their special tokens in one row on a device, longest first."""

    ids_T: Tensor  # int64
    positions_T: Tensor  # int64
    types_T: Tensor | None  # int64
    starts_B: Tensor  # int64 [B + 1]
    order_B: Tensor  # which text stands where
    rows_B: Ints  # the same on the host
    lengths: Ints  # on the host
    cut_rows: Bools  # which texts were too long, in their own order


def finish(bodies: Bodies, tokenizer: Tokenizer, uncounted_id: int | None = None) -> SortedRow:
    """Put special tokens around texts, cut them to `max_length` and sort them."""
    lengths_B = bodies.lengths
    room = tokenizer.room(tokenizer.single)
    kept_B = lengths_B if room is None else lengths_B.clamp(max=room)
    sides = [(bodies.starts_B[:-1], kept_B)]
    return _sorted_row(bodies.ids_T, sides, kept_B < lengths_B, tokenizer.single, uncounted_id)


def join(
    bodies: Bodies, first_B: Tensor, second_B: Tensor, tokenizer: Tokenizer, uncounted_id: int | None = None
) -> SortedRow:
    """Make pairs of these texts, with special tokens, cut to `max_length` and sorted."""
    lengths, starts, room = bodies.lengths, bodies.starts_B[:-1], tokenizer.room(tokenizer.pair)
    lengths_a, lengths_b = lengths[first_B], lengths[second_B]
    kept_a, kept_b = (lengths_a, lengths_b) if room is None else longest_first(lengths_a, lengths_b, room)
    is_cut_B = (kept_a < lengths_a) | (kept_b < lengths_b)
    sides = [(starts[first_B], kept_a), (starts[second_B], kept_b)]
    return _sorted_row(bodies.ids_T, sides, is_cut_B, tokenizer.pair, uncounted_id, tokenizer.has_types)


def longest_first(lengths_a: Tensor, lengths_b: Tensor, room: int) -> tuple[Tensor, Tensor]:
    """Take tokens from the longer side of pairs until both fit, as `tokenizer.longest_first` does on the host."""
    short, long = torch.minimum(lengths_a, lengths_b), torch.maximum(lengths_a, lengths_b)
    fits = short + long <= room
    small = torch.where(fits, short, short.clamp(max=room // 2))
    large = torch.where(fits, long, torch.minimum(long, room - small))
    a_is_long = lengths_a > lengths_b
    return torch.where(a_is_long, large, small), torch.where(a_is_long, small, large)


def _sorted_row(
    flat: Tensor,
    sides: Sequence[tuple[Tensor, Tensor]],
    is_cut_B: Tensor,
    template: Template,
    uncounted_id: int | None,
    has_types: bool = False,
) -> SortedRow:
    """Assemble texts of one or two sides, each given by where it starts in `flat` and how many ids it keeps."""
    device = flat.device
    lengths_B = torch.stack([kept_B for _, kept_B in sides]).sum(0) + template.num_special
    lengths_B, order_B = torch.sort(lengths_B, descending=True, stable=True)
    order, lengths, cut_rows = torch.stack([order_B, lengths_B, is_cut_B.long()]).cpu().numpy()
    starts_B, num_tokens = cumulative(lengths_B), int(lengths.sum())
    text_T = torch.repeat_interleave(torch.arange(len(order), device=device), lengths_B, output_size=num_tokens)
    positions_T = torch.arange(num_tokens, device=device) - starts_B[text_T]
    ids_T, types_T = torch.zeros(2, num_tokens, dtype=torch.int64, device=device).unbind(0)
    begin_B = starts_B[:-1]
    for part, (special, special_types) in enumerate(template.parts):
        for token, kind in zip(special.tolist(), special_types.tolist(), strict=True):
            ids_T[begin_B], types_T[begin_B] = token, kind
            begin_B = begin_B + 1
        if part < len(sides):
            source_B, kept_B = (side[order_B] for side in sides[part])
            place_T = torch.arange(num_tokens, device=device) - begin_B[text_T]
            is_here_T = (place_T >= 0) & (place_T < kept_B[text_T])
            at_T = torch.where(is_here_T, source_B[text_T] + place_T, len(flat) - 1)
            ids_T = torch.where(is_here_T, flat[at_T].long(), ids_T)
            if template.types[part]:
                types_T = torch.where(is_here_T, template.types[part], types_T)
            begin_B = begin_B + kept_B
    if uncounted_id is not None:
        positions_T = _counted(ids_T, positions_T, starts_B, text_T, uncounted_id)
    types = types_T if has_types and _has_types(template) and num_tokens else None
    return SortedRow(ids_T, positions_T, types, starts_B, order_B, order, lengths, cut_rows.astype(bool))


def _has_types(template: Template) -> bool:
    return any(template.types) or any(types.any() for _, types in template.parts)


def _counted(ids_T: Tensor, positions_T: Tensor, starts_B: Tensor, text_T: Tensor, pad_id: int) -> Tensor:
    """Return positions that leave out padding tokens, which stand at -1, as packing.pack counts them."""
    pads = cumulative((ids_T == pad_id).long())
    return torch.where(ids_T == pad_id, -1, positions_T - (pads[1:] - pads[starts_B[text_T]]))
