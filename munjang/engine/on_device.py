"""Texts and pairs that are tokenized where the network is: windows of them as sorted rows there (text/device.py).

The next window is tokenized while the network computes, on a stream of its own, by the thread that launches both.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from munjang.engine.tokenize import DeviceWindow, PromptedTexts, check_ids, number_texts
from munjang.text.device import SortedRow, finish, join
from munjang.text.lookup.device import DeviceLookup
from munjang.text.tokenizer import Tokenizer

DEVICES_THAT_TOKENIZE = ("cuda",)
MIN_UNITS = 2048  # for fewer the host is done sooner (docs/log.md, 2026-11-18)
WINDOW = 16384  # the best of 4,096 to 131,072 (docs/log.md, 2026-11-18)
FIRST_WINDOW = 8192  # the network waits for this one; while it computes it, the next is tokenized (2026-11-19)
Beside = Callable[[], AbstractContextManager[None]]  # enters the stream beside the network's


@dataclass(frozen=True)
class Bench:
    """The parts that tokenizing on a device needs."""

    lookup: DeviceLookup
    beside: Beside
    uncounted_id: int | None


@dataclass
class DeviceTexts(PromptedTexts):
    """Single texts, tokenized on the device."""

    bench: Bench | None = None
    max_ahead: ClassVar[int] = 0

    @property
    def starts(self) -> Sequence[int]:
        return window_starts(len(self))

    def tokenize(self, start: int) -> DeviceWindow:
        """Tokenize a window and sort it."""
        assert self.bench is not None
        with self.bench.beside():
            bodies = self.bench.lookup(self.prompted(start, window_end(start)))
            row = finish(bodies, self.tokenizer, self.bench.uncounted_id)
            check_row(row, max(bodies.max_id, self.tokenizer.single.max_id), self.vocab_size)
        self.note_cut(start, row.cut_rows)
        return DeviceWindow(start, row, self.num_skipped)


class DevicePairs:
    """Pairs of texts; every distinct text is tokenized once, and pairs are joined on the device."""

    max_ahead: ClassVar[int] = 0

    def __init__(self, pairs: list[tuple[str, str]], tokenizer: Tokenizer, vocab_size: int, bench: Bench) -> None:
        self.tokenizer, self.vocab_size, self.bench = tokenizer, vocab_size, bench
        self.is_cut = np.zeros(len(pairs), bool)
        texts, self.text_rows = number_texts(pairs)
        with bench.beside():
            self.bodies = bench.lookup(texts)

    def __len__(self) -> int:
        return len(self.text_rows)

    @property
    def starts(self) -> Sequence[int]:
        return window_starts(len(self))

    def tokenize(self, start: int) -> DeviceWindow:
        """Join the two texts of each pair of a window, and sort the pairs."""
        with self.bench.beside():
            first, second = self.text_rows[start : window_end(start)].T
            row = join(self.bodies, first, second, self.tokenizer, self.bench.uncounted_id)
            check_row(row, max(self.bodies.max_id, self.tokenizer.pair.max_id), self.vocab_size)
        self.is_cut[start : start + len(row.cut_rows)] = row.cut_rows
        return DeviceWindow(start, row)


def window_end(start: int) -> int:
    """Return where the window that begins at `start` ends."""
    return start + min(start + FIRST_WINDOW, WINDOW)


def window_starts(num_units: int) -> list[int]:
    """Return where windows begin.

    >>> window_starts(60_000)
    [0, 8192, 24576, 40960, 57344]
    """
    starts, end = [0], window_end(0)
    while end < num_units:
        starts.append(end)
        end = window_end(end)
    return starts


def check_row(row: SortedRow, max_id: int, vocab_size: int) -> None:
    """Refuse ids outside the embedding table; look at them one by one only if there may be any."""
    if max_id >= vocab_size:
        check_ids(row.ids_T.cpu().numpy().astype(np.int32), vocab_size)
