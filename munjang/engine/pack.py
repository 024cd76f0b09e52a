"""Step 2, pack: a window of tokenized units to flat batches, longest units first. Not one slot is padding.

B units of a batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from munjang.engine.tokenize import DeviceWindow, Window
from munjang.text.flat import cumulative, gather
from munjang.text.lookup.device import upload
from munjang.text.packing import Packed, cut_batches, cut_evenly, pack
from munjang.types import Ints


@dataclass(frozen=True)
class Budget:
    """The tokens of a batch: the maximum, or with `multiple` the average of a multiple of that many batches."""

    tokens: int
    multiple: int | None = None


@dataclass(frozen=True)
class Batch:
    """Packed units, and the rows of the call's result that they fill."""

    rows_B: Ints
    packed: Packed
    is_one_of_many: bool = False  # others are computed beside it, so it takes one core
    spot: "Spot | None" = None  # where the device holds its window's rows; None: it was packed on the host


@dataclass(frozen=True)
class Spot:
    """The rows of a batch among those of its window."""

    order_B: Tensor  # on the device, from the window's first row
    first_row: int  # of the window
    num_rows: int


def pack_window(
    window: Window,
    budget: Budget,
    uncounted_id: int | None = None,
    lay_out: Callable[[Packed], Packed] = lambda packed: packed,
) -> list[Batch]:
    """Cut a window into batches; `lay_out` puts each where the device reads it from."""
    tokens, skip_B, seen_B = window.tokens, window.skip_B, window.seen_B
    if len(tokens.lengths) == 1:  # for a single text numpy's calls would take most of the time
        packed = pack(tokens.ids, tokens.lengths, tokens.types, skip_B, uncounted_id, seen_B)
        return [Batch(window.rows_B, lay_out(packed), len(tokens.ids) > budget.tokens)]
    starts, is_one_of_many = cumulative(tokens.lengths), len(tokens.ids) > budget.tokens
    batches = []
    for chosen in _cut(tokens.lengths, budget):
        lengths = tokens.lengths[chosen]
        ids = gather(tokens.ids, starts, chosen, lengths)
        types = None if tokens.types is None else gather(tokens.types, starts, chosen, lengths)
        skip, seen = (None if each is None else each[chosen] for each in (skip_B, seen_B))
        packed = pack(ids, lengths, types, skip, uncounted_id, seen)
        batches.append(Batch(window.rows_B[chosen], lay_out(packed), is_one_of_many))
    return batches


def cut_window(window: DeviceWindow, budget: Budget) -> list[Batch]:
    """Cut the sorted row of a window into batches: slices of it."""
    row, batches = window.row, []
    skip_B = np.full(len(row.lengths), window.num_skipped) if window.num_skipped else None
    edges = cumulative(row.lengths)
    is_one_of_many = int(edges[-1]) > budget.tokens
    for chosen in _cut(row.lengths, budget):
        texts = slice(int(chosen[0]), int(chosen[-1]) + 1)
        tokens = slice(int(edges[texts.start]), int(edges[texts.stop]))
        packed = Packed(
            row.ids_T[tokens],
            row.positions_T[tokens],
            None if row.types_T is None else row.types_T[tokens],
            upload(cumulative(row.lengths[texts]).astype(np.int32), row.ids_T.device),
            row.lengths[texts],
            None if skip_B is None else skip_B[texts],
        )
        spot = Spot(row.order_B[texts], window.first_row, len(row.lengths))
        batches.append(Batch(window.first_row + row.rows_B[texts], packed, is_one_of_many, spot))
    return batches


def _cut(lengths: Ints, budget: Budget) -> Iterator[Ints]:
    if budget.multiple is None:
        return cut_batches(lengths, budget.tokens)
    return cut_evenly(lengths, budget.tokens, budget.multiple)
