"""Tokenizing on a device: texts or pairs to one row of ids there, longest first, ready to be cut into batches.

The host has the lengths, and says what stands where; a kernel puts it there.

B texts or pairs, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from munjang.text.flat import by_length, cumulative
from munjang.text.lookup.device import Bodies, upload
from munjang.text.tokenizer import Template, Tokenizer, longest_first
from munjang.types import Bools, Ints


@dataclass(frozen=True)
class SortedRow:
    """Texts with their special tokens in one row on a device, longest first."""

    ids_T: Tensor  # int64
    positions_T: Tensor  # int64
    types_T: Tensor | None  # int64
    order_B: Tensor  # which text stands where
    rows_B: Ints  # the same on the host
    lengths: Ints  # on the host
    cut_rows: Bools  # which texts were too long, in their own order


def finish(bodies: Bodies, tokenizer: Tokenizer, uncounted_id: int | None = None) -> SortedRow:
    """Put special tokens around texts, cut them to `max_length` and sort them."""
    room, lengths = tokenizer.room(tokenizer.single), bodies.lengths
    kept = lengths if room is None else np.minimum(lengths, room)
    return _sorted_row(bodies, [(bodies.starts, kept)], kept < lengths, tokenizer.single, uncounted_id)


def join(bodies: Bodies, first: Ints, second: Ints, tokenizer: Tokenizer, uncounted_id: int | None = None) -> SortedRow:
    """Make pairs of these texts, with special tokens, cut to `max_length` and sorted."""
    room, lengths_a, lengths_b = tokenizer.room(tokenizer.pair), bodies.lengths[first], bodies.lengths[second]
    kept_a, kept_b = (lengths_a, lengths_b) if room is None else longest_first(lengths_a, lengths_b, room)
    are_cut = (kept_a < lengths_a) | (kept_b < lengths_b)
    sides = [(bodies.starts[first], kept_a), (bodies.starts[second], kept_b)]
    return _sorted_row(bodies, sides, are_cut, tokenizer.pair, uncounted_id, tokenizer.has_types)


def _sorted_row(
    bodies: Bodies,
    sides: Sequence[tuple[Ints, Ints]],
    are_cut: Bools,
    template: Template,
    uncounted_id: int | None,
    has_types: bool = False,
) -> SortedRow:
    """Assemble texts of one or two sides, each given by where it starts among the ids and how many it keeps."""
    from munjang.text import cuda

    empty = np.zeros(len(are_cut), np.int64), np.zeros(len(are_cut), np.int64)
    first, second = sides[0], sides[1] if len(sides) > 1 else empty
    lengths = first[1] + second[1] + template.num_special
    order = by_length(lengths)
    lengths, num_texts = lengths[order], len(order)
    special, types = (np.concatenate(each).astype(np.int64) for each in zip(*template.parts, strict=True))
    given = [cumulative(lengths), *(each[order] for each in (*first, *second)), order, special, types]
    numbers, num_tokens = upload(np.concatenate(given), bodies.ids_T.device), int(lengths.sum())
    order_B = numbers[5 * num_texts + 1 : 6 * num_texts + 1]
    row_3T = torch.empty(3, num_tokens, dtype=torch.int64, device=numbers.device)
    sizes = [len(ids) for ids, _ in template.parts] + [0]
    kinds = [*template.types, 0]
    cuda.run(
        *(cuda.assemble, num_texts, numbers, bodies.ids_T, row_3T, num_tokens, *sizes[:3], *kinds[:2]),
        -1 if uncounted_id is None else uncounted_id,
    )
    ids_T, positions_T, types_T = row_3T.unbind(0)
    keeps_types = has_types and (any(template.types) or bool(types.any())) and num_tokens > 0
    return SortedRow(ids_T, positions_T, types_T if keeps_types else None, order_B, order, lengths, are_cut)
