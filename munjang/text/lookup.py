"""Chunk look-up: ids of known chunks by hash, over the whole batch in numpy.

C characters of the whole batch, W chunks. The structures it is exact for, and why, are in text/structures.py.
A hit is believed only after its characters were compared, so inputs built to collide cost time but never give another
chunk's ids. The table is bounded: when it is full it starts again from nothing.
"""

import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Generic, TypeVar

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

Number = TypeVar("Number", np.uint32, np.int32)
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

    def add(self, hashes: Hashes, codes: "Flat[np.uint32]", ids: "Flat[np.int32]", counts: Ints) -> None:
        """Append entries with new hashes, their characters and their ids; `counts` is what a hit says of the ids."""
        first, number = self.size, len(hashes)
        self._reserve(number, len(codes.values), len(ids.values))
        span = slice(first, first + number)
        self.hashes[span], self.code_counts[span], self.id_counts[span] = hashes, codes.counts, counts
        self.code_starts[span] = self.num_codes + cumulative(codes.counts)[:-1]
        self.id_starts[span] = self.num_ids + cumulative(ids.counts)[:-1]
        self.codes[self.num_codes : self.num_codes + len(codes.values)] = codes.values
        self.ids[self.num_ids : self.num_ids + len(ids.values)] = ids.values
        self.size += number
        self.num_codes += len(codes.values)
        self.num_ids += len(ids.values)
        self._show(hashes, np.arange(first, first + number, dtype=np.int32))

    def _show(self, hashes: Hashes, entries: NDArray[np.int32]) -> None:
        """Put entries into the first free slot from that of their hash on."""
        mask = np.uint64(len(self.slots) - 1)
        at = hashes & mask
        while len(entries):
            free = np.flatnonzero(self.slots[at] < 0)
            _, first = np.unique(at[free], return_index=True)  # of those that want one slot, one gets it
            taken = free[first]
            self.slots[at[taken]] = entries[taken]
            rest = np.ones(len(entries), bool)
            rest[taken] = False
            at, entries = (at[rest] + np.uint64(1)) & mask, entries[rest]

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


@dataclass(frozen=True)
class Flat(Generic[Number]):
    """Rows of different lengths, one after the other."""

    values: NDArray[Number]
    counts: Ints


@dataclass(frozen=True)
class Chunks:
    """The chunks of a batch. They cover it, but for single spaces between them: no character has to be moved."""

    codes_C: Codes
    begins_W: Ints
    sizes_W: Ints
    chunk_of_C: Ints
    place_C: Ints  # of each character in its chunk

    def hashes(self) -> Hashes:
        """A keyed 64-bit hash of each chunk of at most MAX_CHUNK characters: weighted by secret keys, by place."""
        values = self.codes_C.astype(np.uint64)
        values += np.uint64(1)
        values *= KEYS.take(self.place_C, mode="clip")
        sums = np.zeros(len(values) + 1, np.uint64)
        np.cumsum(values, out=sums[1:])
        hashes = sums[self.begins_W + self.sizes_W] - sums[self.begins_W]
        return hashes ^ (hashes >> np.uint64(31))  # slots are taken from the low bits, keys mix best into the high ones

    def verified(self, table: Table, entries_W: NDArray[np.int32]) -> NDArray[np.int32]:
        """The same entries, with -1 where the characters are not those of the entry: their text goes whole."""
        same_W = table.code_counts[entries_W] == self.sizes_W
        where_C = table.code_starts[entries_W].take(self.chunk_of_C)
        where_C += self.place_C
        differs_C = table.codes.take(where_C, mode="clip") != self.codes_C
        differs_C[self.gaps()] = False
        if differs_C.any():
            same_W[self.chunk_of_C[differs_C]] = False
        return np.where(same_W, entries_W, np.int32(-1))

    def gaps(self) -> Ints:
        """The spaces that are nobody's."""
        ends = self.begins_W[:-1] + self.sizes_W[:-1]
        return ends[ends < self.begins_W[1:]]

    def characters(self, chosen: Ints) -> Codes:
        """Of the chosen chunks, one after the other."""
        sizes = self.sizes_W[chosen]
        place = np.arange(int(sizes.sum())) - np.repeat(cumulative(sizes)[:-1], sizes)
        return self.codes_C[np.repeat(self.begins_W[chosen], sizes) + place]


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
        chunks, text_of_W = self._cut(codes_C, sizes_B)
        entries_W, table = self._entries(chunks)
        counts_W = np.where(entries_W >= 0, table.id_counts[entries_W], WHOLE)
        is_whole_W = counts_W == WHOLE
        if not is_whole_W.any():
            return self._join(table, entries_W, counts_W), _per_text(text_of_W, counts_W, len(texts))
        whole_B = np.zeros(len(texts), bool)
        whole_B[text_of_W[is_whole_W]] = True
        keep_W = ~whole_B[text_of_W]
        known = self._join(table, entries_W[keep_W], counts_W[keep_W])
        lengths_B = _per_text(text_of_W[keep_W], counts_W[keep_W], len(texts))
        rows = np.flatnonzero(whole_B)
        return _merge(known, lengths_B, rows, encode_whole(self.tokenizer, [texts[row] for row in rows.tolist()]))

    def _cut(self, codes_C: Codes, sizes_B: Ints) -> tuple["Chunks", Ints]:
        """The chunks, and whose each is."""
        starts = cumulative(sizes_B)
        spaces = np.flatnonzero(codes_C == SPACE)
        inside = spaces[(spaces > 0) & (spaces < len(codes_C) - 1)]
        edge = np.zeros(len(codes_C) + 1, bool)
        edge[starts] = True
        inside = inside[~edge[inside] & ~edge[inside + 1]]  # a text's own first or last space is no cut
        cuts = inside[self._is_safe(codes_C[inside - 1]) & self._is_safe(codes_C[inside + 1])]
        is_begin_C = np.zeros(len(codes_C), bool)
        is_begin_C[starts[:-1][sizes_B > 0]] = True
        is_begin_C[cuts + (0 if self.structure.keeps_space else 1)] = True
        begins = np.flatnonzero(is_begin_C)
        text_of = np.searchsorted(starts, begins, side="right") - 1
        ends = np.append(begins[1:], len(codes_C))
        if not self.structure.keeps_space:  # the space between two chunks of one text is nobody's
            ends[:-1] -= text_of[1:] == text_of[:-1]
        chunk_of_C = np.cumsum(is_begin_C)
        chunk_of_C -= 1
        place_C = np.arange(len(codes_C))
        place_C -= begins.take(chunk_of_C)
        return Chunks(codes_C, begins, ends - begins, chunk_of_C, place_C), text_of

    def _is_safe(self, codes: Codes) -> NDArray[np.bool_]:
        known = self.safe[codes]
        if (known == 0).any():
            for code in np.unique(codes[known == 0]).tolist():
                self.safe[code] = 1 if structures.is_safe(code, self.tokenizer, self.structure) else 2
            known = self.safe[codes]
        return known == 1

    def _entries(self, chunks: "Chunks") -> tuple[NDArray[np.int32], Table]:
        """The entry of each chunk, or -1 for those that can't be kept; unknown ones are tokenized and added."""
        is_short_W = chunks.sizes_W <= MAX_CHUNK
        hashes_W = chunks.hashes()
        table = self.table
        found_W = np.where(is_short_W, table.find(hashes_W), -1)
        if ((found_W == -1) & is_short_W).any():
            with self.locks.setdefault(os.getpid(), threading.Lock()):  # a forked child's holder may be gone
                table = self._learn(chunks, hashes_W, is_short_W)
            found_W = np.where(is_short_W, table.find(hashes_W), -1)
        return chunks.verified(table, found_W), table

    def _learn(self, chunks: "Chunks", hashes_W: Hashes, is_short_W: NDArray[np.bool_]) -> Table:
        """A table that has these chunks, as far as it can hold them; only for who holds the lock."""
        wanted = np.flatnonzero(is_short_W)
        for _ in range(2):
            missing = wanted[self.table.find(hashes_W[wanted]) == -1]
            _, first = np.unique(hashes_W[missing], return_index=True)
            if self.table.has_room(len(first)):
                break
            self.table = Table()  # full: readers keep the old one until they are done
        table, fresh = self.table, missing[first][:MAX_ENTRIES]
        if len(fresh):
            codes = Flat(chunks.characters(fresh), chunks.sizes_W[fresh])
            ids, counts = self._tokenize(codes)
            table.add(hashes_W[fresh], codes, ids, counts)
        if not table.has_room(0):
            self.table = Table()
        return table

    def _tokenize(self, codes: "Flat[np.uint32]") -> tuple["Flat[np.int32]", Ints]:
        """The ids of chunks, and their counts; WHOLE for those that hold an added token."""
        joined, edges = codes.values.tobytes().decode("utf-32-le"), cumulative(codes.counts).tolist()
        texts = [joined[begin:end] for begin, end in pairwise(edges)]
        ids = [found.ids for found in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        counts = lengths.copy()
        for start in range(0, len(texts), 256):  # one look at many of them is mostly enough
            part = texts[start : start + 256]
            if self._holds_added(" ".join(part)):
                counts[start : start + 256][[self._holds_added(text) for text in part]] = WHOLE
        return Flat(np.fromiter(chain.from_iterable(ids), np.int32, int(lengths.sum())), lengths), counts

    def _holds_added(self, text: str) -> bool:
        if any(content in text for content in self.added):
            return True
        shown = self.normalize(text)
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
