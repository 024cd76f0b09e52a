"""Chunk look-up: ids of known chunks by hash, over the whole batch in numpy.

C characters of the whole batch, W chunks. The structures it is exact for, and why, are in text/structures.py.
A hit is believed only after its characters were compared, so inputs built to collide cost time but never give another
chunk's ids. The table is bounded: when it is full it starts again from nothing.
"""

import os
import re
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.text import structures
from munjang.text.packing import cumulative
from munjang.types import Ids, Ints

MAX_CHUNK = 64  # characters; longer ones are not kept, their text goes whole
MAX_ENTRIES = 1 << 18  # a power of two; about 40 MB with their characters and ids
MAX_PER_ENTRY = 16  # characters or ids, on average: a table of hostile chunks is full sooner
SPACE, REPLACEMENT = 0x20, 0xFFFD
LONE = re.compile("[\ud800-\udfff]")
WHOLE = -1  # instead of a count: this chunk can't be taken out of its text

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]
# from the system's entropy: the keys are secret to whoever writes the texts
KEYS: Hashes = np.random.default_rng().integers(0, 1 << 64, MAX_CHUNK, np.uint64) | np.uint64(1)


class Table:
    """Known chunks: open addressing from a hash to an entry, entries appended and never changed.

    One thread writes (under the lock of its owner), any number read: an entry is complete before its slot shows it.
    """

    def __init__(self) -> None:
        self.slots = np.full(4 * MAX_ENTRIES, -1, np.int32)
        self.hashes = np.zeros(1024, np.uint64)
        self.code_starts = np.zeros(1024, np.int64)
        self.code_counts = np.zeros(1024, np.int32)
        self.id_starts = np.zeros(1024, np.int64)
        self.id_counts = np.zeros(1024, np.int32)
        self.codes: Codes = np.zeros(8192, np.uint32)
        self.ids: Ids = np.zeros(4096, np.int32)
        self.size = self.num_codes = self.num_ids = 0

    def has_room(self, entries: int) -> bool:
        """Whether so many more chunks may be kept."""
        stored = max(self.num_codes, self.num_ids)
        return self.size + entries <= MAX_ENTRIES and stored <= MAX_PER_ENTRY * MAX_ENTRIES

    def find(self, hashes_W: Hashes) -> NDArray[np.int32]:
        """The entry of each hash, or -1."""
        mask = np.uint64(len(self.slots) - 1)
        found_W = self.slots[hashes_W & mask]
        open_ = np.flatnonzero((found_W >= 0) & (self.hashes[found_W] != hashes_W))
        step = np.uint64(0)
        while len(open_):  # another hash sits in the slot: look at the next one
            step += np.uint64(1)
            found_W[open_] = self.slots[(hashes_W[open_] + step) & mask]
            entry = found_W[open_]
            open_ = open_[(entry >= 0) & (self.hashes[entry] != hashes_W[open_])]
        return found_W

    def add(self, hashes: Hashes, codes: list[Codes], ids: list[Ids], counts: Ints) -> None:
        """Append entries with new hashes."""
        first, number = self.size, len(hashes)
        code_counts = np.array([len(code) for code in codes], np.int64)
        id_counts = np.array([len(part) for part in ids], np.int64)
        self._reserve(number, int(code_counts.sum()), int(id_counts.sum()))
        span = slice(first, first + number)
        self.hashes[span], self.code_counts[span], self.id_counts[span] = hashes, code_counts, counts
        self.code_starts[span] = self.num_codes + cumulative(code_counts)[:-1]
        self.id_starts[span] = self.num_ids + cumulative(id_counts)[:-1]
        self.codes[self.num_codes : self.num_codes + code_counts.sum()] = np.concatenate(codes)
        self.ids[self.num_ids : self.num_ids + id_counts.sum()] = np.concatenate(ids)
        self.size, self.num_codes, self.num_ids = (
            first + number,
            self.num_codes + int(code_counts.sum()),
            self.num_ids + int(id_counts.sum()),
        )
        mask = len(self.slots) - 1
        for entry, value in enumerate(hashes.tolist(), first):
            slot = value & mask
            while self.slots[slot] >= 0:
                slot = (slot + 1) & mask
            self.slots[slot] = entry

    def _reserve(self, entries: int, codes: int, ids: int) -> None:
        for name, need in (
            *(
                (name, self.size + entries)
                for name in ("hashes", "code_starts", "code_counts", "id_starts", "id_counts")
            ),
            ("codes", self.num_codes + codes),
            ("ids", self.num_ids + ids),
        ):
            array = getattr(self, name)
            if need > len(array):
                grown = np.zeros(max(need, 2 * len(array)), array.dtype)
                grown[: len(array)] = array
                setattr(self, name, grown)


class ChunkLookup:
    """Ids of texts from the ids of their chunks."""

    def __init__(self, tokenizer: Tokenizer, structure: structures.Structure) -> None:
        self.tokenizer, self.structure = tokenizer, structure
        self.table = Table()
        self.locks: dict[int, threading.Lock] = {}
        self.safe = np.zeros(0x110000, np.int8)  # 0 not asked yet, 1 safe beside a cut, 2 not
        self.added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        normalizer = tokenizer.normalizer
        self.normalize = (lambda text: text) if normalizer is None else normalizer.normalize_str
        self.added_normal = [self.normalize(content) for content in self.added]

    def __call__(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Flat ids without special tokens, and how many each text has."""
        codes_C, sizes_B = to_codes(texts)
        begins_W, ends_W, text_of_W = self._cut(codes_C, sizes_B)
        entries_W, table = self._entries(codes_C, begins_W, ends_W)
        counts_W = np.where(entries_W >= 0, table.id_counts[entries_W], WHOLE)
        whole_B = np.zeros(len(texts), bool)
        whole_B[text_of_W[counts_W == WHOLE]] = True
        if not whole_B.any():
            return self._join(table, entries_W, counts_W), _per_text(text_of_W, counts_W, len(texts))
        keep_W = ~whole_B[text_of_W]
        known = self._join(table, entries_W[keep_W], counts_W[keep_W])
        lengths_B = _per_text(text_of_W[keep_W], counts_W[keep_W], len(texts))
        rows = np.flatnonzero(whole_B)
        return _merge(known, lengths_B, rows, encode_whole(self.tokenizer, [texts[row] for row in rows.tolist()]))

    def _cut(self, codes_C: Codes, sizes_B: Ints) -> tuple[Ints, Ints, Ints]:
        """Where each chunk begins and ends, and whose it is."""
        starts = cumulative(sizes_B)
        spaces = np.flatnonzero(codes_C == SPACE)
        inside = spaces[(spaces > 0) & (spaces < len(codes_C) - 1)]
        edge = np.zeros(len(codes_C) + 1, bool)
        edge[starts] = True
        inside = inside[~edge[inside] & ~edge[inside + 1]]  # a text's own first or last space is no cut
        cuts = inside[self._is_safe(codes_C[inside - 1]) & self._is_safe(codes_C[inside + 1])]
        begins = np.sort(np.concatenate([starts[:-1][sizes_B > 0], cuts + (0 if self.structure.keeps_space else 1)]))
        text_of = np.searchsorted(starts, begins, side="right") - 1
        ends = np.append(begins[1:], len(codes_C))
        if not self.structure.keeps_space:  # the space between two chunks of one text is nobody's
            ends[:-1] -= text_of[1:] == text_of[:-1]
        return begins, ends, text_of

    def _is_safe(self, codes: Codes) -> NDArray[np.bool_]:
        known = self.safe[codes]
        if (known == 0).any():
            for code in np.unique(codes[known == 0]).tolist():
                self.safe[code] = 1 if structures.is_safe(code, self.tokenizer, self.structure) else 2
            known = self.safe[codes]
        return known == 1

    def _entries(self, codes_C: Codes, begins_W: Ints, ends_W: Ints) -> tuple[NDArray[np.int32], Table]:
        """The entry of each chunk, or -1 for chunks too long to keep; unknown ones are tokenized and added."""
        sizes_W = ends_W - begins_W
        short = np.flatnonzero(sizes_W <= MAX_CHUNK)
        entries_W = np.full(len(begins_W), -1, np.int32)
        begins, sizes = begins_W[short], sizes_W[short]
        hashes = hash_chunks(codes_C, begins, sizes)
        table = self.table
        found = verified(table, table.find(hashes), codes_C, begins, sizes)
        missing = np.flatnonzero(found == -1)
        if len(missing):
            with self.locks.setdefault(os.getpid(), threading.Lock()):  # a forked child's holder may be gone
                if not self.table.has_room(len(np.unique(hashes[missing]))):
                    self.table = Table()  # full: readers keep the old one until they are done
                if self.table is not table:
                    table, missing = self.table, np.arange(len(hashes))
                found[missing] = table.find(hashes[missing])
                _, first = np.unique(hashes[missing[found[missing] == -1]], return_index=True)
                fresh = missing[found[missing] == -1][first][:MAX_ENTRIES]
                self._learn(table, codes_C, hashes[fresh], begins[fresh], sizes[fresh])
                if not table.has_room(0):
                    self.table = Table()
            found = verified(table, table.find(hashes), codes_C, begins, sizes)
        entries_W[short] = np.maximum(found, -1)  # -2, a collision: the text goes whole
        return entries_W, table

    def _learn(self, table: Table, codes_C: Codes, hashes: Hashes, begins: Ints, sizes: Ints) -> None:
        if not len(hashes):
            return
        codes = [codes_C[begin : begin + size] for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)]
        chunks = [code.tobytes().decode("utf-32-le") for code in codes]
        ids = [
            np.array(found.ids, np.int32)
            for found in self.tokenizer.encode_batch_fast(chunks, add_special_tokens=False)
        ]
        counts = np.array(
            [WHOLE if self._holds_added(chunk) else len(part) for chunk, part in zip(chunks, ids, strict=True)]
        )
        table.add(hashes, codes, ids, counts)

    def _holds_added(self, chunk: str) -> bool:
        if any(content in chunk for content in self.added):
            return True
        shown = self.normalize(chunk)
        return any(content in shown for content in self.added_normal)

    def _join(self, table: Table, entries_W: NDArray[np.int32], counts_W: Ints) -> Ids:
        starts_W = table.id_starts[entries_W]
        offsets_W = cumulative(counts_W)
        return table.ids[np.repeat(starts_W - offsets_W[:-1], counts_W) + np.arange(offsets_W[-1])]


def to_codes(texts: Sequence[str]) -> tuple[Codes, Ints]:
    """All characters in one row, and how many each text has; a lone surrogate becomes U+FFFD."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    lone = (codes >= 0xD800) & (codes < 0xE000)
    if lone.any():
        codes = np.where(lone, np.uint32(REPLACEMENT), codes)
    return codes, np.fromiter(map(len, texts), np.int64, len(texts))


def hash_chunks(codes_C: Codes, begins_W: Ints, sizes_W: Ints) -> Hashes:
    """A keyed 64-bit hash of each chunk: its characters weighted by secret keys, by place."""
    starts = cumulative(sizes_W)
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes_W)
    codes = codes_C[np.repeat(begins_W, sizes_W) + place].astype(np.uint64) + np.uint64(1)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(codes * KEYS[place], dtype=np.uint64)])
    hashes = sums[starts[1:]] - sums[starts[:-1]]
    return hashes ^ (hashes >> np.uint64(31))  # slots are taken from the low bits, keys mix best into the high ones


def verified(
    table: Table, entries_W: NDArray[np.int32], codes_C: Codes, begins_W: Ints, sizes_W: Ints
) -> NDArray[np.int32]:
    """The same entries, with -2 where the characters differ."""
    out = entries_W.copy()
    hit = np.flatnonzero(entries_W >= 0)
    entry, sizes = entries_W[hit], sizes_W[hit]
    wrong = table.code_counts[entry] != sizes
    out[hit[wrong]] = -2
    hit, entry, sizes = hit[~wrong], entry[~wrong], sizes[~wrong]
    place = np.arange(int(sizes.sum())) - np.repeat(cumulative(sizes)[:-1], sizes)
    differs = (
        codes_C[np.repeat(begins_W[hit], sizes) + place]
        != table.codes[np.repeat(table.code_starts[entry], sizes) + place]
    )
    if differs.any():
        out[hit[np.unique(np.repeat(np.arange(len(hit)), sizes)[differs])]] = -2
    return out


def encode_whole(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ids, Ints]:
    """Flat ids and lengths straight from `tokenizers`, which refuses lone surrogates: they become U+FFFD."""
    clean = [text if text.isascii() else LONE.sub("\ufffd", text) for text in texts]
    found = [np.array(one.ids, np.int32) for one in tokenizer.encode_batch_fast(clean, add_special_tokens=False)]
    lengths = np.fromiter(map(len, found), np.int64, len(found))
    return (np.concatenate(found) if found else np.zeros(0, np.int32)), lengths


def _per_text(text_of_W: Ints, counts_W: Ints, num_texts: int) -> Ints:
    return np.bincount(text_of_W, weights=counts_W, minlength=num_texts).astype(np.int64)


def _merge(known: Ids, lengths_B: Ints, rows: Ints, whole: tuple[Ids, Ints]) -> tuple[Ids, Ints]:
    """Put the texts that went whole back among the others."""
    flat, lengths = whole
    total = lengths_B.copy()
    total[rows] = lengths
    out = np.empty(int(total.sum()), np.int32)
    is_whole = np.zeros(len(total), bool)
    is_whole[rows] = True
    from_whole = np.repeat(is_whole, total)
    out[from_whole], out[~from_whole] = flat, known
    return out, total
