"""Packed batches: one flat row of tokens, plus where each text begins. No text is padded.

T tokens of the whole batch, B texts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from munjang.text.flat import by_length, cumulative, gather
from munjang.types import Ids, Ints


@cache
def has_triton() -> bool:
    """Return whether our own GPU kernels can be compiled: torch brings Triton for CUDA on Linux."""
    return find_spec("triton") is not None


@dataclass(frozen=True)
class Packed:
    """One batch for the network. Only `starts_B` and `runs` say which token belongs to which text."""

    ids_T: Tensor  # int64
    positions_T: Tensor  # int64, from 0 in every text
    types_T: Tensor | None  # int64, segment of each token; None: all zero
    starts_B: Tensor  # int32 [B + 1], cumulative lengths
    lengths: Ints  # on the host, for control flow without a device sync
    skip: Ints | None = None  # leading tokens of each text that pooling leaves out (a prompt)
    seen: Ints | None = None  # leading tokens of each text that its tokens attend to; None: all of them
    laid_out: Tensor | None = None  # all of the above as a CUDA graph reads it (engine/graphs.py)

    @property
    def num_tokens(self) -> int:
        return int(self.ids_T.shape[0])

    @property
    def max_length(self) -> int:
        return int(self.lengths.max(initial=0))

    @cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        """Neighbouring texts of equal length as (first token, texts, length): rectangles without padding."""
        edges = np.flatnonzero(np.diff(self.lengths)) + 1
        first = np.concatenate([[0], edges]).astype(int)
        last = np.concatenate([edges, [len(self.lengths)]]).astype(int)
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        return [
            (int(starts[a]), b - a, int(self.lengths[a]))
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
            if b > a and self.lengths[a]
        ]

    @cached_property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """Return where the text of each token begins and ends, on the device: int32 [T] each."""
        if self.starts_B.is_cuda and has_triton():
            from munjang.text import cuda

            begins_T, ends_T = (self.starts_B.new_empty(self.num_tokens) for _ in range(2))
            cuda.run(cuda.bound, len(self.starts_B) - 1, self.starts_B, begins_T, ends_T)
            return begins_T, ends_T
        places_T = torch.arange(self.num_tokens, dtype=torch.int32, device=self.starts_B.device)
        text_of_T = torch.searchsorted(self.starts_B, places_T, right=True, out_int32=True)  # one too high
        return self.starts_B[text_of_T - 1], self.starts_B[text_of_T]

    def to(self, device: torch.device) -> "Packed":
        """Return this batch on a device."""
        if device.type == "cpu":
            return self
        return self._each(lambda tensor: tensor.to(device, non_blocking=tensor.is_pinned()))

    def record(self, stream: torch.cuda.Stream) -> None:
        """Keep the memory of what is on a GPU until this stream has read it."""
        for tensor in (self.ids_T, self.positions_T, self.types_T, self.starts_B):
            if tensor is not None and tensor.is_cuda:
                tensor.record_stream(stream)

    def pinned(self) -> "Packed":
        """Return this batch in pinned memory, from which a GPU copies by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Packed":
        types_T = None if self.types_T is None else change(self.types_T)
        ids_T, positions_T, starts_B = change(self.ids_T), change(self.positions_T), change(self.starts_B)
        return Packed(ids_T, positions_T, types_T, starts_B, self.lengths, self.skip, self.seen)

    def halves(self) -> tuple["Packed", "Packed"]:
        """Two batches with the first and the second half of the texts."""
        middle = len(self.lengths) // 2
        cut = int(self.lengths[:middle].sum())

        def part(texts: slice, tokens: slice) -> Packed:
            lengths = self.lengths[texts]
            return Packed(
                self.ids_T[tokens],
                self.positions_T[tokens],
                None if self.types_T is None else self.types_T[tokens],
                torch.from_numpy(cumulative(lengths).astype(np.int32)).to(self.starts_B.device),
                lengths,
                None if self.skip is None else self.skip[texts],
                None if self.seen is None else self.seen[texts],
            )

        return part(slice(0, middle), slice(0, cut)), part(slice(middle, None), slice(cut, None))


def pack(
    ids: Ids | Ints,
    lengths: Ints,
    types: Ids | None = None,
    skip: Ints | None = None,
    pad_id: int | None = None,
    seen: Ints | None = None,
) -> Packed:
    """A batch from flat ids and the length of each text.

    `pad_id` is given for models that do not count a padding token as a position (RoBERTa): one can only be here
    because the text spelled it out, and then it stands at -1 and the tokens behind it move up.
    """
    starts = cumulative(lengths)
    positions = np.arange(starts[-1])
    if len(lengths) > 1:
        positions -= np.repeat(starts[:-1], lengths)
    if pad_id is not None and (is_pad := ids == pad_id).any():
        pads = np.cumsum(is_pad)
        before = np.concatenate([[0], pads])[starts[:-1]]
        positions = np.where(is_pad, -1, positions - (pads - np.repeat(before, lengths)))
    return Packed(
        torch.from_numpy(ids.astype(np.int64)),
        torch.from_numpy(positions),
        None if types is None else torch.from_numpy(types.astype(np.int64)),
        torch.from_numpy(starts.astype(np.int32)),
        lengths,
        skip,
        seen,
    )


def join(batches: Sequence[Packed]) -> tuple[Packed, Ints]:
    """Batches on the host as one, longest texts first, and where in it each text of each batch stands.

    >>> joined, places = join([pack(np.array([5]), np.array([1])), pack(np.array([6, 7]), np.array([2]))])
    >>> joined.ids_T.tolist(), places.tolist()
    ([6, 7, 5], [1, 0])
    """
    lengths = np.concatenate([batch.lengths for batch in batches])
    order, starts = by_length(lengths), cumulative(lengths)
    kept = lengths[order]

    def sorted_by_length(values: Sequence[Tensor]) -> Tensor:
        flat: Ints = torch.cat(list(values)).numpy()
        return torch.from_numpy(gather(flat, starts, order, kept))

    types = None
    if any(batch.types_T is not None for batch in batches):
        types = sorted_by_length(
            [torch.zeros_like(each.ids_T) if each.types_T is None else each.types_T for each in batches]
        )
    skip = None
    if any(batch.skip is not None for batch in batches):
        skips = [np.zeros(len(each.lengths), np.int64) if each.skip is None else each.skip for each in batches]
        skip = np.concatenate(skips)[order]
    seen = None
    if any(batch.seen is not None for batch in batches):
        seen = np.concatenate([each.lengths if each.seen is None else each.seen for each in batches])[order]
    packed = Packed(
        sorted_by_length([batch.ids_T for batch in batches]),
        sorted_by_length([batch.positions_T for batch in batches]),
        types,
        torch.from_numpy(cumulative(kept).astype(np.int32)),
        kept,
        skip,
        seen,
    )
    return packed, np.argsort(order, kind="stable")


def cut_batches(lengths: Ints, budget: int) -> Iterator[Ints]:
    """Rows of each batch: longest texts first, at most `budget` tokens a batch (a longer text is alone).

    >>> [rows.tolist() for rows in cut_batches(np.array([3, 9, 4, 4]), 8)]
    [[1], [2, 3], [0]]
    """
    order = by_length(lengths)
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + budget, side="right")))
        yield order[start:end]
        start = end


def cut_evenly(lengths: Ints, budget: int, multiple: int) -> Iterator[Ints]:
    """Rows of each batch: longest texts first, about equally many tokens a batch, as many batches as workers times n.

    A batch holds at most half a text more than `budget`. With no last batch of its own size, no worker waits long.

    >>> [rows.tolist() for rows in cut_evenly(np.array([3, 9, 4, 4, 4]), 9, 2)]
    [[1], [2], [3], [4, 0]]
    """
    order = by_length(lengths)
    ends = cumulative(lengths[order])
    num_batches = -(-int(ends[-1]) // budget)
    if num_batches > 1:
        num_batches = -(-num_batches // multiple) * multiple
    start = 0
    for batch in range(num_batches, 0, -1):
        target = ends[start] + (ends[-1] - ends[start]) / batch
        at = int(np.searchsorted(ends, target))
        nearest = at if at < len(ends) and ends[at] - target <= target - ends[at - 1] else at - 1
        end = len(order) if batch == 1 else min(max(nearest, start + 1), len(order))
        if end > start:
            yield order[start:end]
        start = end
    if start < len(order):  # only texts without tokens
        yield order[start:]
