"""The look-up on a GPU: the steps of lookup.py as kernels (text/cuda.py), for the texts of a window at once.

The host joins the texts and counts their characters; the GPU cuts them into spans, finds those in a copy of the table,
and writes their ids. Spans that the table does not know yet go to the host in one small batch, are tokenized and added
there, and looked up again; texts that must go whole take the host's path, and their ids come back.

B texts, T tokens.
"""

import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from munjang.text.flat import cumulative, gather
from munjang.text.lookup.lookup import SpanLookup, by_groups, groups
from munjang.text.lookup.spans import MAX_SPAN_CHARACTERS, keys
from munjang.text.lookup.table import PER_ENTRY, UNKNOWN, Table
from munjang.text.lookup.unknown import without_surrogates
from munjang.types import Array, Ids, Ints

MAX_CHARACTERS_AT_ONCE = 1 << 22
MIN_CHARACTERS_AT_ONCE = 1 << 16
MAX_TEXT_CHARACTERS = 1 << 18  # longer texts take the host's path
MAX_UNKNOWN_AT_ONCE = 1 << 18  # spans that the host hears of, each as often as it comes up
MAX_ROUNDS = 4  # a table that starts again from nothing meanwhile costs one more
IS_SAFE, IS_UNSAFE, IS_ASKED_FOR = 1, 2, 3  # kinds of characters; 0: not known here yet


@dataclass(frozen=True)
class Bodies:
    """The ids of texts on a device, without special tokens."""

    ids_T: Tensor  # int32
    starts: Ints  # of each text, on the host
    lengths: Ints  # on the host
    max_id: int  # no id is larger

    def to_host(self) -> tuple[Ids, Ints]:
        """Return flat ids and lengths as numpy arrays."""
        ids: Ids = self.ids_T.cpu().numpy()
        return gather(ids, self.starts, np.arange(len(self.lengths)), self.lengths), self.lengths


class Mirror:
    """A copy of a host's table on a device, empty at first; `update` copies what was added."""

    def __init__(self, table: Table, device: torch.device) -> None:
        self.table, self.device = table, device
        self.slots = upload(np.full(len(table.slots), UNKNOWN, np.int32), device)
        self.columns = {name: upload(_signed(getattr(table, name)[:0]), device) for name in (*PER_ENTRY, "ids")}
        self.num_entries = self.num_ids = self.max_id = 0

    def update(self) -> None:
        """Copy what the table has got since; only for who holds its lock."""
        from munjang.text import cuda

        table, first, first_id = self.table, self.num_entries, self.num_ids
        self.num_entries, self.num_ids = table.num_entries, table.num_ids
        self.max_id = max(self.max_id, int(table.ids[first_id : self.num_ids].max(initial=0)))
        for name, column in self.columns.items():
            values = _signed(getattr(table, name))
            added = slice(first_id, self.num_ids) if name == "ids" else slice(first, self.num_entries)
            if len(column) < len(values):
                self.columns[name] = upload(values, self.device)
            else:
                column[added].copy_(upload(values[added], self.device))
        num_new = self.num_entries - first
        cuda.run(cuda.show, num_new, self.columns["places"], self.slots, first)


class DeviceLookup:
    """Looks texts up on a device; any number of threads may call it, on one stream: one at a time computes."""

    def __init__(self, lookup: SpanLookup, device: torch.device) -> None:
        self.lookup, self.device, self.lock = lookup, device, threading.Lock()
        self.mirror = Mirror(lookup.table, device)
        self.max_characters = MAX_CHARACTERS_AT_ONCE  # fewer if the device has not as much memory
        self.kinds = np.zeros(0x110000, np.uint8)  # of characters
        self._set_kinds(np.arange(128))
        powers = [key.upto(MAX_SPAN_CHARACTERS + 1)[0][: MAX_SPAN_CHARACTERS + 1] for key in keys()]
        self.powers = upload(_signed(np.concatenate(powers)), device)
        self.num_values = 0
        self.unknown = torch.empty(MAX_UNKNOWN_AT_ONCE, 4, dtype=torch.int64, device=device)

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Bodies:
        """Return the ids of texts, the ones that `tokenizers` gives."""
        with self.lock, torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            while True:
                try:
                    return self._in_groups(texts)
                except torch.OutOfMemoryError:
                    if self.max_characters <= MIN_CHARACTERS_AT_ONCE:
                        raise
                    self.max_characters //= 4
                torch.cuda.empty_cache()  # outside the handler: the traceback would keep tensors alive

    def _in_groups(self, texts: Sequence[str]) -> Bodies:
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        if int(sizes.sum()) <= self.max_characters:
            return self._look_up(texts, sizes)
        parts_of = list(groups(texts, self.max_characters))
        at = np.cumsum([0, *map(len, parts_of)])
        parts = [self._look_up(part, sizes[first:][: len(part)]) for first, part in zip(at, parts_of, strict=False)]
        edges = cumulative(np.array([len(part.ids_T) for part in parts], np.int64))
        ids_T = torch.empty(int(edges[-1]), dtype=torch.int32, device=self.device)
        for part, start in zip(parts, edges.tolist(), strict=False):
            ids_T[start : start + len(part.ids_T)].copy_(part.ids_T)
        starts = [part.starts + start for part, start in zip(parts, edges, strict=False)]
        lengths = [part.lengths for part in parts]
        return Bodies(ids_T, np.concatenate(starts), np.concatenate(lengths), max(part.max_id for part in parts))

    def _look_up(self, texts: Sequence[str], sizes: Ints) -> Bodies:
        from munjang.text import cuda

        too_long = np.flatnonzero(sizes > MAX_TEXT_CHARACTERS)
        shown = texts
        if len(too_long):
            shown, sizes = list(texts), sizes.copy()
            for row in too_long.tolist():
                shown[row], sizes[row] = "", 0
        joined = "".join(shown)
        try:
            codes_C, bits = self._codes(joined)
        except UnicodeEncodeError:  # lone surrogates; to look for them would take longer than all else here
            joined = without_surrogates(joined)
            codes_C, bits = self._codes(joined)
        starts = cumulative(sizes)
        entries_C = torch.empty(len(codes_C), dtype=torch.int32, device=self.device)
        starts_B, lengths = self._find(codes_C, bits, starts, entries_C, joined)
        lengths[too_long] = -1
        whole = np.flatnonzero(lengths < 0)
        ids, whole_lengths = by_groups(self.lookup.look_up, [texts[row] for row in whole.tolist()])
        places = cumulative(np.maximum(lengths, 0))
        num_spelled = int(places[-1])
        places[:-1][whole] = -1
        ids_T = torch.empty(num_spelled + len(ids), dtype=torch.int32, device=self.device)
        columns = self.mirror.columns
        tables = (columns["id_starts"], columns["id_counts"], columns["ids"])
        cuda.run(cuda.spell, len(texts), starts_B, entries_C, upload(places[:-1], self.device), *tables, ids_T)
        ids_T[num_spelled:].copy_(upload(ids, self.device))  # of texts that go whole, behind the others
        places[:-1][whole], lengths[whole] = num_spelled + cumulative(whole_lengths)[:-1], whole_lengths
        return Bodies(ids_T, places[:-1], lengths, max(self.mirror.max_id, int(ids.max(initial=0))))

    def _codes(self, joined: str) -> tuple[Tensor, int]:
        """Send characters in as few bytes each as all of them allow; the bits of each count."""
        if joined.isascii():
            return upload(np.frombuffer(joined.encode("ascii"), np.uint8), self.device), 0xFF
        is_wide = sys.getsizeof(joined) > 4 * len(joined)  # as CPython holds it; where not, the next line tries in vain
        narrow = b"" if is_wide else joined.encode("utf-16-le")
        if len(narrow) == 2 * len(joined):
            return upload(np.frombuffer(narrow, np.int16), self.device), 0xFFFF
        wide = np.frombuffer(joined.encode("utf-32-le"), np.int32)
        for key in keys():
            key.take(wide.max(keepdims=True).astype(np.uint32))  # draws the numbers of its plane
        return upload(wide, self.device), 0x1FFFFF

    def _find(self, codes_C: Tensor, bits: int, starts: Ints, entries_C: Tensor, joined: str) -> tuple[Tensor, Ints]:
        """Fill in the entry of each span; return how many ids each text has, or less than 0 if it must go whole."""
        from munjang.text import cuda

        self._copy_values()
        num_texts, rounds_left = len(starts) - 1, MAX_ROUNDS
        cuts_C = torch.empty(len(codes_C), dtype=torch.bool, device=self.device)
        while True:
            numbers = upload(np.concatenate([starts, np.zeros(num_texts + 2, np.int64)]), self.device)
            starts_B, lengths_B, status = numbers, numbers[num_texts + 1 :], numbers[2 * num_texts + 1 :]
            mirror, columns = self.mirror, self.mirror.columns
            cuda.run(cuda.cut, num_texts, codes_C, bits, starts_B, self.kinds_there, cuts_C, status)
            cuda.run(
                *(cuda.find, num_texts, codes_C, bits, starts_B, cuts_C, self.values, self.num_values),
                *(self.powers, mirror.slots, len(mirror.slots) - 1, columns["hashes"], columns["second_hashes"]),
                *(columns["id_counts"], entries_C, lengths_B, status, self.unknown, len(self.unknown)),
                *(self.lookup.structure.keeps_space, MAX_SPAN_CHARACTERS),
            )
            lengths: Ints = numbers[num_texts + 1 :].cpu().numpy()
            num_unknown, is_new = lengths[num_texts:].tolist()
            if is_new:
                self._set_kinds(np.flatnonzero(self.kinds_there.cpu().numpy() == IS_ASKED_FOR))
                continue
            rounds_left -= 1
            if not num_unknown or not rounds_left:  # those that are still unknown go whole
                return starts_B, lengths[:num_texts]
            self._learn(joined, self.unknown[:num_unknown].cpu().numpy())

    def _set_kinds(self, codes: Ints) -> None:
        """Tell the device which of these characters are safe."""
        are_safe = self.lookup.safe.are_safe(codes.astype(np.uint32))
        self.kinds[codes] = np.where(are_safe, IS_SAFE, IS_UNSAFE)
        self.kinds_there = upload(self.kinds, self.device)

    def _learn(self, joined: str, unknown: Ints) -> None:
        """Let the host tokenize each of these spans once, and copy what it has learned."""
        hashes, second, begins, sizes = unknown[np.argsort(unknown[:, 2])].T

        def strings_of(chosen: Ints) -> list[str]:
            places = zip(begins[chosen].tolist(), sizes[chosen].tolist(), strict=True)
            return [joined[begin : begin + size] for begin, size in places]

        with self.lookup.lock:
            columns = np.ascontiguousarray(hashes).view(np.uint64), np.ascontiguousarray(second).view(np.uint64)
            table = self.lookup.learn(strings_of, *columns, np.arange(len(begins)))
            if table is not self.mirror.table:
                self.mirror = Mirror(table, self.device)
            self.mirror.update()

    def _copy_values(self) -> None:
        """Copy the numbers of characters, if planes of Unicode were added."""
        both = [key.values for key in keys()]
        size = min(map(len, both))
        if self.num_values < size:
            values = np.concatenate([each[:size] for each in both])
            self.num_values, self.values = size, upload(_signed(values), self.device)


def upload(values: Array, device: torch.device) -> Tensor:
    """Copy an array to a device, through pinned memory beside a GPU, so that nobody waits for it."""
    dtype = torch.from_numpy(np.zeros(0, values.dtype)).dtype
    host = torch.empty(len(values), dtype=dtype, pin_memory=device.type == "cuda")
    host.numpy()[:] = values
    return host.to(device, non_blocking=True)


def _signed(values: Array) -> Array:
    return values.view(np.int64) if values.dtype == np.uint64 else values
