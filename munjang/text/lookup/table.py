"""The table of spans: from the two hashes of a span to its ids, in plain arrays that a device can hold too."""

import numpy as np
from numpy.typing import NDArray

from munjang.text.flat import cumulative
from munjang.text.lookup.spans import Hashes
from munjang.types import Ids, Ints

MAX_ENTRIES = 1 << 18  # a power of two; about 25 MB with their ids
MAX_IDS_PER_ENTRY = 16  # on average: a table of hostile spans is full sooner
NOT_KEPT = -1  # instead of a number of ids: the span can't be taken out of its text, which goes whole
PER_ENTRY = ("hashes", "second_hashes", "id_starts", "id_counts", "places")
UNKNOWN, OTHER = -1, -2  # instead of an entry: no such span yet; another span has this first hash


class Table:
    """Known spans: open addressing from a hash to an entry, entries appended and never changed.

    One thread writes (under the lock of its owner), any number read: an entry is complete before its slot shows it.
    It is bounded: who finds no room in it begins a new one.
    """

    def __init__(self) -> None:
        self.slots = np.full(4 * MAX_ENTRIES, UNKNOWN, np.int32)
        self.hashes = np.zeros(1024, np.uint64)
        self.second_hashes = np.zeros(1024, np.uint64)  # with the size of the span in their lowest bits
        self.id_starts = np.zeros(1024, np.int64)
        self.id_counts = np.zeros(1024, np.int32)  # or NOT_KEPT
        self.places = np.zeros(1024, np.int32)  # the slot that shows each entry, for copies that grow with this
        self.ids: Ids = np.zeros(4096, np.int32)
        self.num_entries = self.num_ids = 0

    def has_room(self, num_entries: int) -> bool:
        """Tell whether so many more spans may be kept."""
        return self.num_entries + num_entries <= MAX_ENTRIES and self.num_ids <= MAX_IDS_PER_ENTRY * MAX_ENTRIES

    def find(self, hashes_W: Hashes) -> NDArray[np.int32]:
        """Return the entry of each first hash, or UNKNOWN."""
        mask = np.uint64(len(self.slots) - 1)
        entries_W = self.slots[hashes_W & mask]
        open_ = np.flatnonzero((entries_W >= 0) & (self.hashes[entries_W] != hashes_W))
        step = np.uint64(0)
        while len(open_):  # another hash sits in the slot: look at the next one
            step += np.uint64(1)
            entries_W[open_] = self.slots[(hashes_W[open_] + step) & mask]
            entry = entries_W[open_]
            open_ = open_[(entry >= 0) & (self.hashes[entry] != hashes_W[open_])]
        return entries_W

    def entries(self, hashes_W: Hashes, second_W: Hashes) -> NDArray[np.int32]:
        """Return the entry of each span by both of its hashes, or UNKNOWN, or OTHER where only the first one agrees."""
        entries_W = self.find(hashes_W)
        differs_W = (self.second_hashes.take(entries_W, mode="wrap") != second_W) & (entries_W >= 0)
        if differs_W.any():
            entries_W[differs_W] = OTHER
        return entries_W

    def add(self, hashes: Hashes, second: Hashes, ids: Ids, counts: Ints) -> None:
        """Append entries with new hashes and their flat ids; `counts` says how many each has, or NOT_KEPT."""
        lengths = np.maximum(counts, 0)
        first, end = self.num_entries, self.num_entries + len(hashes)
        self._reserve(end, self.num_ids + len(ids))
        self.hashes[first:end], self.second_hashes[first:end], self.id_counts[first:end] = hashes, second, counts
        self.id_starts[first:end] = self.num_ids + cumulative(lengths)[:-1]
        self.ids[self.num_ids : self.num_ids + len(ids)] = ids
        self.num_entries = end
        self.num_ids += len(ids)
        self._show(hashes, np.arange(first, end, dtype=np.int32))

    def join(self, entries_W: NDArray[np.int32], counts_W: Ints) -> Ids:
        """Return the ids of entries in a row."""
        offsets_W = cumulative(counts_W)
        shifts_W = self.id_starts.take(entries_W) - offsets_W[:-1]
        return self.ids.take(np.repeat(shifts_W, counts_W) + np.arange(offsets_W[-1]))

    def _show(self, hashes: Hashes, entries: NDArray[np.int32]) -> None:
        """Put entries into the first free slot from that of their hash on."""
        mask = np.uint64(len(self.slots) - 1)
        at = hashes & mask
        while len(entries):
            free = np.flatnonzero(self.slots[at] < 0)
            _, first = np.unique(at[free], return_index=True)  # of those that want one slot, one gets it
            taken = free[first]
            self.slots[at[taken]] = entries[taken]
            self.places[entries[taken]] = at[taken]
            rest = np.ones(len(entries), bool)
            rest[taken] = False
            at, entries = (at[rest] + np.uint64(1)) & mask, entries[rest]

    def _reserve(self, num_entries: int, num_ids: int) -> None:
        sizes = dict.fromkeys(PER_ENTRY, num_entries) | {"ids": num_ids}
        for name, size in sizes.items():
            array = getattr(self, name)
            if size > len(array):
                grown = np.zeros(max(size, 2 * len(array)), array.dtype)
                grown[: len(array)] = array
                setattr(self, name, grown)
