"""The look-up on a device: the steps of lookup.py as torch operations, for the texts of a window at once.

The host joins the texts and counts their characters; the rest is computed where the network is. A copy of the table
stands there and grows with it. Spans that it does not know yet go to the host in one small batch, are tokenized and
added there, and looked up again; texts that must go whole take the host's path, and their ids come back.

The hashes are those of spans.py. Each span is summed up from its own beginning, so powers up to 64 are all it takes.

C characters of a window, W spans, B texts, T tokens.
"""

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from munjang.text.lookup.lookup import SpanLookup, by_groups, groups
from munjang.text.lookup.spans import MAX_SPAN_CHARACTERS, SPACE, Key, keys
from munjang.text.lookup.table import OTHER, UNKNOWN, Table
from munjang.text.lookup.unknown import without_surrogates
from munjang.types import Array, Ids, Ints

MAX_CHARACTERS_AT_ONCE = 1 << 22  # each takes about 100 bytes of the device on the way; fewer if it has not as many
MIN_CHARACTERS_AT_ONCE = 1 << 16
MAX_TEXT_CHARACTERS = 1 << 18  # longer texts take the host's path
MAX_ROUNDS = 3  # a table that starts again from nothing meanwhile costs one more


@dataclass(frozen=True)
class Bodies:
    """The ids of texts on a device, without special tokens."""

    ids_T: Tensor  # int32
    starts_B: Tensor  # int64 [B + 1]
    num_tokens: int
    max_id: int  # no id is larger

    @property
    def lengths(self) -> Tensor:
        return self.starts_B.diff()

    def to_host(self) -> tuple[Ids, Ints]:
        """Return flat ids and lengths as numpy arrays."""
        ids: Ids = self.ids_T[: self.num_tokens].cpu().numpy()
        lengths: Ints = self.lengths.cpu().numpy()
        return ids, lengths


@dataclass(frozen=True)
class Spans:
    """The spans of a window on a device."""

    begins_W: Tensor
    sizes_W: Tensor
    hashes_W: Tensor
    second_W: Tensor
    edges_B: Tensor  # which spans are those of each text [B + 1]


class Mirror:
    """A copy of a host's table on a device; `update` copies what was added."""

    def __init__(self, table: Table, device: torch.device) -> None:
        self.table, self.device = table, device
        self.slots = torch.full((len(table.slots),), UNKNOWN, dtype=torch.int32, device=device)
        self.columns = {
            name: torch.zeros(0, dtype=torch.int64, device=device)
            for name in ("hashes", "second_hashes", "id_starts", "id_counts")
        }
        self.ids = torch.zeros(0, dtype=torch.int32, device=device)
        self.num_entries = self.num_ids = self.max_id = 0
        self.num_probes = 1

    def update(self) -> None:
        """Copy what the table has got since; only for who holds its lock."""
        table, first, last = self.table, self.num_entries, self.table.num_entries
        if first == last:
            return
        for name, column in self.columns.items():
            added = getattr(table, name)[first:last]
            self.columns[name] = _append(column, first, added.view(np.int64) if added.itemsize == 8 else added)
        new_ids = table.ids[self.num_ids : table.num_ids]
        self.ids = _append(self.ids, self.num_ids, new_ids)
        self.max_id = max(self.max_id, int(new_ids.max(initial=0)))
        places = _upload(table.places[first:last], self.device).long()
        self.slots[places] = torch.arange(first, last, dtype=torch.int32, device=self.device)
        self.num_entries, self.num_ids, self.num_probes = last, table.num_ids, table.num_probes

    def entries(self, hashes_W: Tensor, second_W: Tensor) -> Tensor:
        """Return the entry of each span, UNKNOWN, or OTHER if its text must go whole."""
        if not self.num_entries:
            return torch.full_like(hashes_W, UNKNOWN)
        mask, steps = len(self.slots) - 1, torch.arange(self.num_probes, device=self.device)
        entries_WP = self.slots[(hashes_W[:, None] + steps) & mask].long()  # the slots from that of each hash on
        has_hash_WP = self.columns["hashes"][entries_WP.clamp(min=0)] == hashes_W[:, None]
        entries_W = torch.where(has_hash_WP & (entries_WP >= 0), entries_WP, UNKNOWN).amax(1)  # one has it, or none
        known_W = entries_W.clamp(min=0)
        is_other_W = (self.columns["second_hashes"][known_W] != second_W) | (self.columns["id_counts"][known_W] < 0)
        return torch.where((entries_W >= 0) & is_other_W, OTHER, entries_W)


class DeviceLookup:
    """Looks texts up on a device; any number of threads may call it, on one stream: one at a time computes."""

    def __init__(self, lookup: SpanLookup, device: torch.device) -> None:
        self.lookup, self.device, self.lock = lookup, device, threading.Lock()
        self.mirror, self.max_characters = Mirror(lookup.table, device), MAX_CHARACTERS_AT_ONCE
        self.kinds = torch.zeros(0x110000, dtype=torch.uint8, device=device)
        self.values_2V = torch.zeros(2, 0, dtype=torch.int64, device=device)  # of both keys, for every character
        self.powers_2P = torch.stack([_upload(_powers(key), device) for key in keys()])
        self._copy_values()
        ascii_codes = np.arange(128, dtype=np.uint32)
        self.kinds[:128] = _upload(np.where(lookup.safe.are_safe(ascii_codes), 1, 2).astype(np.uint8), device)

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> Bodies:
        """Return the ids of texts, the ones that `tokenizers` gives."""
        with self.lock:
            while self.max_characters > MIN_CHARACTERS_AT_ONCE:
                try:
                    return self._in_groups(texts)
                except torch.OutOfMemoryError:
                    self.max_characters //= 4
                torch.cuda.empty_cache()  # outside the handler: the traceback would keep tensors alive
            return self._in_groups(texts)

    def _in_groups(self, texts: Sequence[str]) -> Bodies:
        sizes_B = np.fromiter(map(len, texts), np.int64, len(texts))
        if int(sizes_B.sum()) <= self.max_characters:
            return self._look_up(texts, sizes_B)
        parts_of = list(groups(texts, self.max_characters))
        edges = np.cumsum([0, *map(len, parts_of)])
        parts = [self._look_up(part, sizes_B[at : at + len(part)]) for at, part in zip(edges, parts_of, strict=False)]
        first = torch.zeros(1, dtype=torch.int64, device=self.device)
        offsets = np.cumsum([0, *(part.num_tokens for part in parts)]).tolist()
        starts = [part.starts_B[1:] + offset for part, offset in zip(parts, offsets, strict=False)]
        ids = [part.ids_T[: part.num_tokens] for part in parts]
        ids_T = torch.cat([*ids, first.int()])
        return Bodies(ids_T, torch.cat([first, *starts]), offsets[-1], max((part.max_id for part in parts), default=0))

    def _look_up(self, texts: Sequence[str], sizes_B: Ints) -> Bodies:
        too_long = np.flatnonzero(sizes_B > MAX_TEXT_CHARACTERS)
        shown = texts
        if len(too_long):
            shown, sizes_B = list(texts), sizes_B.copy()
            for row in too_long.tolist():
                shown[row], sizes_B[row] = " ", 1
        joined = "".join(shown)
        if not joined:
            starts_B = torch.zeros(len(texts) + 1, dtype=torch.int64, device=self.device)
            return Bodies(torch.zeros(1, dtype=torch.int32, device=self.device), starts_B, 0, 0)
        try:
            codes_C = self._codes(joined)
        except UnicodeEncodeError:  # lone surrogates; to look for them would take longer than all else here
            joined = without_surrogates(joined)
            codes_C = self._codes(joined)
        starts_B = cumulative(_upload(sizes_B, self.device))
        spans = self._cut(codes_C, starts_B, joined.isascii())
        entries_W, num_whole = self._entries(spans, joined)
        if num_whole or len(too_long):
            return self._with_whole(texts, too_long, spans, entries_W)
        starts_W = self.mirror.columns["id_starts"][entries_W]
        return _join(self.mirror.ids, starts_W, self.mirror.columns["id_counts"][entries_W], spans, self.mirror.max_id)

    def _codes(self, joined: str) -> Tensor:
        """Send characters in as few bytes each as all of them allow."""
        if joined.isascii():
            return _upload(np.frombuffer(joined.encode("ascii"), np.uint8), self.device).long()
        is_wide = sys.getsizeof(joined) > 4 * len(joined)  # as CPython holds it; where not, the next line tries in vain
        narrow = b"" if is_wide else joined.encode("utf-16-le")
        if len(narrow) == 2 * len(joined):
            return _upload(np.frombuffer(narrow, np.int16), self.device).long() & 0xFFFF
        wide = np.frombuffer(joined.encode("utf-32-le"), np.int32)
        for key in keys():
            key.take(wide.max(keepdims=True).astype(np.uint32))  # draws the numbers of its plane
        self._copy_values()
        return _upload(wide, self.device).long()

    def _cut(self, codes_C: Tensor, starts_B: Tensor, is_ascii: bool) -> Spans:
        """Cut texts at every space between two safe characters, as spans.cut does, and hash the spans."""
        num_codes, keeps_space = len(codes_C), self.lookup.structure.keeps_space
        is_edge = torch.zeros(num_codes + 1, dtype=torch.bool, device=self.device)
        is_edge[starts_B] = True
        is_inside = (codes_C[1:-1] == SPACE) & ~is_edge[1:-2] & ~is_edge[2:-1]
        safe = self._are_safe(codes_C, is_inside, is_ascii)
        is_begin_C = is_edge[:-1].clone()
        if num_codes > 2:
            begins = is_begin_C[1:-1] if keeps_space else is_begin_C[2:]
            begins |= is_inside & safe[:-2] & safe[2:]
        begins_W = is_begin_C.nonzero().squeeze(1)
        ends_W = torch.cat([begins_W[1:], starts_B[-1:]])
        if not keeps_space:  # the space between two spans of one text is nobody's
            ends_W[:-1] -= (~is_edge[begins_W[1:]]).long()
        place_C = torch.arange(num_codes, device=self.device) - begins_W[torch.cumsum(is_begin_C, 0) - 1]
        place_C = place_C.clamp_(max=MAX_SPAN_CHARACTERS)
        # both keys in one row: what stands before a span falls out of the difference
        sums = cumulative((self.values_2V.index_select(1, codes_C) * self.powers_2P.index_select(1, place_C)).flatten())
        first_W = sums[ends_W] - sums[begins_W]
        second_W = sums[ends_W + num_codes] - sums[begins_W + num_codes]
        sizes_W = ends_W - begins_W
        return Spans(
            begins_W,
            sizes_W,
            first_W ^ ((first_W >> 31) & ((1 << 33) - 1)),  # int64 shifts its sign in
            ((second_W << 7) | ((second_W >> 57) & 127)) ^ sizes_W,
            torch.searchsorted(begins_W, starts_B),
        )

    def _are_safe(self, codes_C: Tensor, is_inside: Tensor, is_ascii: bool) -> Tensor:
        """Tell for every character whether it may stand beside a cut; new ones beside a space are asked for."""
        kinds_C = self.kinds[codes_C]
        if is_ascii:
            return kinds_C == 1
        is_new = is_inside & ((kinds_C[:-2] == 0) | (kinds_C[2:] == 0))
        if bool(is_new.any()):
            at = is_new.nonzero().squeeze(1)
            new = torch.unique(torch.cat([codes_C[at], codes_C[at + 2]]))
            kinds = self.lookup.safe.are_safe(new.cpu().numpy().astype(np.uint32))
            self.kinds[new] = torch.from_numpy(np.where(kinds, 1, 2).astype(np.uint8)).to(self.device)
            kinds_C = self.kinds[codes_C]
        return kinds_C == 1

    def _entries(self, spans: Spans, joined: str) -> tuple[Tensor, int]:
        """Return the entry of each span, and how many must go whole; unknown ones are tokenized on the host."""
        is_short_W = spans.sizes_W <= MAX_SPAN_CHARACTERS
        for rounds_left in reversed(range(MAX_ROUNDS)):
            entries_W = torch.where(is_short_W, self.mirror.entries(spans.hashes_W, spans.second_W), OTHER)
            num_unknown, num_whole = torch.stack([entries_W == UNKNOWN, entries_W < 0]).sum(1).tolist()
            if not num_unknown or not rounds_left:  # entries are those of the mirror as it is now
                break
            self._learn(spans, joined, (entries_W == UNKNOWN).nonzero().squeeze(1))
        return entries_W, num_whole

    def _learn(self, spans: Spans, joined: str, unknown: Tensor) -> None:
        """Let the host tokenize each of these spans once, and copy what it has learned."""
        in_order, order = torch.sort(spans.hashes_W[unknown], stable=True)
        is_first = torch.ones(len(in_order), dtype=torch.bool, device=self.device)
        is_first[1:] = in_order[1:] != in_order[:-1]
        new = unknown[torch.sort(order[is_first]).values]
        columns = (spans.hashes_W, spans.second_W, spans.begins_W, spans.sizes_W)
        hashes, second, begins, sizes = torch.stack([column[new] for column in columns]).cpu().numpy()

        def strings_of(chosen: Ints) -> list[str]:
            places = zip(begins[chosen].tolist(), sizes[chosen].tolist(), strict=True)
            return [joined[begin : begin + size] for begin, size in places]

        with self.lookup.lock:
            table = self.lookup.learn(strings_of, hashes.view(np.uint64), second.view(np.uint64), np.arange(len(new)))
            if table is not self.mirror.table:
                self.mirror = Mirror(table, self.device)
            self.mirror.update()

    def _with_whole(self, texts: Sequence[str], too_long: Ints, spans: Spans, entries_W: Tensor) -> Bodies:
        """Join the ids of spans, and those of texts that go whole, which the host tokenizes."""
        edges_B = spans.edges_B
        text_of_W = torch.searchsorted(edges_B, torch.arange(len(entries_W), device=self.device), right=True) - 1
        is_whole_B = torch.zeros(len(texts), dtype=torch.bool, device=self.device)
        is_whole_B[text_of_W[entries_W < 0]] = True
        is_whole_B[_upload(too_long, self.device)] = True
        rows = is_whole_B.nonzero().squeeze(1)
        flat, lengths = by_groups(self.lookup.look_up, [texts[row] for row in rows.tolist()])
        known_W = entries_W.clamp(min=0)
        known = torch.zeros(1, dtype=torch.int64, device=self.device)
        starts, counts = (
            self.mirror.columns[name] if self.mirror.num_entries else known for name in ("id_starts", "id_counts")
        )
        starts_W, counts_W = starts[known_W], counts[known_W]
        counts_W[is_whole_B[text_of_W]] = 0
        # all ids of such a text stand for its first span, behind those of the table
        first_W, lengths_R = edges_B[rows], _upload(lengths, self.device)
        starts_W[first_W] = len(self.mirror.ids) + cumulative(lengths_R)[:-1]
        counts_W[first_W] = lengths_R
        ids = torch.cat([self.mirror.ids, _upload(flat, self.device)])
        return _join(ids, starts_W, counts_W, spans, max(self.mirror.max_id, int(flat.max(initial=0))))

    def _copy_values(self) -> None:
        """Copy the numbers of characters, if planes of Unicode were added."""
        both = [key.values for key in keys()]
        size = min(map(len, both))
        if self.values_2V.shape[1] < size:
            self.values_2V = torch.stack([_upload(values[:size].view(np.int64), self.device) for values in both])


def _powers(key: Key) -> Array:
    powers, _ = key.upto(MAX_SPAN_CHARACTERS + 1)
    return powers[: MAX_SPAN_CHARACTERS + 1].view(np.int64)


def _join(ids: Tensor, starts_W: Tensor, counts_W: Tensor, spans: Spans, max_id: int) -> Bodies:
    """Put the ids of spans in a row, with one more at its end, so that no row is empty."""
    offsets = cumulative(counts_W)
    num_tokens = int(offsets[-1])
    shift_T = torch.repeat_interleave(starts_W - offsets[:-1], counts_W, output_size=num_tokens)
    ids_T = torch.zeros(num_tokens + 1, dtype=torch.int32, device=ids.device)
    ids_T[:-1] = ids[shift_T + torch.arange(num_tokens, device=ids.device)]
    return Bodies(ids_T, offsets[spans.edges_B], num_tokens, max_id)


def cumulative(lengths: Tensor) -> Tensor:
    """Return where each row begins, and where the last one ends."""
    starts = torch.zeros(len(lengths) + 1, dtype=torch.int64, device=lengths.device)
    torch.cumsum(lengths, 0, out=starts[1:])
    return starts


def _append(column: Tensor, size: int, added: Array) -> Tensor:
    """Put values behind the first `size` ones of a column, which grows by doubling."""
    end = size + len(added)
    if end > len(column):
        grown = torch.zeros(max(end, 2 * len(column)), dtype=column.dtype, device=column.device)
        grown[:size] = column[:size]
        column = grown
    column[size:end] = _upload(added, column.device)
    return column


def _upload(values: Array, device: torch.device) -> Tensor:
    """Copy an array to a device, through pinned memory beside a GPU, so that nobody waits for it."""
    dtype = torch.from_numpy(np.zeros(0, values.dtype)).dtype
    host = torch.empty(len(values), dtype=dtype, pin_memory=device.type == "cuda")
    host.numpy()[:] = values
    return host.to(device, non_blocking=True)
