"""Chunk look-up: ids of known chunks by hash, over the whole batch in numpy.

C characters of the whole batch, W chunks. The structures it is exact for, and why, are in text/structures.py.

A chunk is known by 128 bits: two sums of its characters modulo 2^64, each character being a random number of its own
that is multiplied by a power of a random odd one for its place. All of them come from the system's entropy once for
each process and are never shown. Two different chunks of at most 64 characters agree in one sum with a chance of at
most 2^-38, however they were chosen (worst: two characters in Thue-Morse order, where the powers' difference ends in
26 zero bits), in both with 2^-76; ordinary words with 2^-120. The numbers per character are needed: with the codes
themselves, whose differences someone may choose, (x^2 - 1)^22 is 0 for every odd x.
The table is bounded: when it is full it starts again from nothing.
"""

import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.text import structures
from munjang.text.flat import cumulative, flatten
from munjang.text.joined import WHOLE, ChunkTokenizer
from munjang.types import Ids, Ints

MAX_CHUNK = 64  # characters; longer ones are not kept, their text goes whole
MAX_ENTRIES = 1 << 18  # a power of two; about 25 MB with their ids
MAX_PER_ENTRY = 16  # ids, on average: a table of hostile chunks is full sooner
PLANE = 0x10000  # characters in one plane of Unicode, of 17
SPACE, REPLACEMENT = 0x20, 0xFFFD
LONE = re.compile("[\ud800-\udfff]")

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


class Key:
    """A secret number for every character, an odd one, and its powers and those of its inverse modulo 2^64."""

    def __init__(self) -> None:
        random = np.random.default_rng()  # from the system's entropy
        self.seed = random.integers(0, 1 << 32, 8).tolist()  # of the characters' numbers
        self.values: Hashes = self._plane(0)
        self.odd = int(random.integers(0, 1 << 61)) * 8 + 3  # 3 modulo 8: its powers' differences are least even
        self.powers: tuple[Hashes, Hashes] = (np.ones(1, np.uint64), np.ones(1, np.uint64))

    def take(self, codes_C: Codes) -> Hashes:
        """The numbers of characters; those of a plane of Unicode are drawn when it first comes up."""
        values = self.values
        try:
            return values.take(codes_C)
        except IndexError:  # the same numbers for every thread that comes here
            planes = map(self._plane, range(len(values) // PLANE, int(codes_C.max()) // PLANE + 1))
            self.values = np.concatenate([values, *planes])
            return self.take(codes_C)

    def _plane(self, plane: int) -> Hashes:
        return np.random.default_rng([*self.seed, plane]).integers(0, 1 << 64, PLANE, np.uint64)

    def upto(self, size: int) -> tuple[Hashes, Hashes]:
        """At least `size` powers of the odd number and of its inverse."""
        powers = self.powers  # another thread may store others meanwhile
        if len(powers[0]) < size:
            inverse, more = pow(self.odd, -1, 1 << 64), size + size // 8
            self.powers = powers = (_powers(self.odd, more), _powers(inverse, more))
        return powers


def _powers(value: int, size: int) -> Hashes:
    factors = np.full(size, value, np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


@cache
def keys() -> tuple[Key, Key]:
    """Of this process and those forked from it."""
    return Key(), Key()


class Table:
    """Known chunks: open addressing from a hash to an entry, entries appended and never changed.

    One thread writes (under the lock of its owner), any number read: an entry is complete before its slot shows it.
    """

    def __init__(self) -> None:
        self.slots = np.full(4 * MAX_ENTRIES, -1, np.int32)
        self.hashes = np.zeros(1024, np.uint64)
        self.others = np.zeros(1024, np.uint64)  # the second hash, with the size in its lowest bits
        self.id_starts = np.zeros(1024, np.int64)
        self.id_counts = np.zeros(1024, np.int32)
        self.ids: Ids = np.zeros(4096, np.int32)
        self.size = self.num_ids = 0

    def has_room(self, entries: int) -> bool:
        """Whether so many more chunks may be kept."""
        return self.size + entries <= MAX_ENTRIES and self.num_ids <= MAX_PER_ENTRY * MAX_ENTRIES

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

    def known(self, hashes_W: Hashes, others_W: Hashes) -> NDArray[np.int32]:
        """The entry of each chunk by both of its hashes, or -1; -2 where the second one is not that of the entry."""
        found_W = self.find(hashes_W)
        differs_W = (self.others.take(found_W, mode="wrap") != others_W) & (found_W >= 0)
        if differs_W.any():
            found_W[differs_W] = -2
        return found_W

    def add(self, hashes: Hashes, others: Hashes, ids: Ids, lengths: Ints, counts: Ints) -> None:
        """Append entries with new hashes and their ids; `counts` is what a hit says of the number of ids."""
        first, number = self.size, len(hashes)
        self._reserve(number, len(ids))
        span = slice(first, first + number)
        self.hashes[span], self.others[span], self.id_counts[span] = hashes, others, counts
        self.id_starts[span] = self.num_ids + cumulative(lengths)[:-1]
        self.ids[self.num_ids : self.num_ids + len(ids)] = ids
        self.size += number
        self.num_ids += len(ids)
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

    def _reserve(self, entries: int, ids: int) -> None:
        of_entries = ("hashes", "others", "id_starts", "id_counts")
        for name, need in (*((name, self.size + entries) for name in of_entries), ("ids", self.num_ids + ids)):
            array = getattr(self, name)
            if need > len(array):
                grown = np.zeros(max(need, 2 * len(array)), array.dtype)
                grown[: len(array)] = array
                setattr(self, name, grown)


@dataclass(frozen=True)
class Chunks:
    """The chunks of a batch, where they are."""

    codes_C: Codes
    begins_W: Ints
    sizes_W: Ints

    def hashes(self) -> tuple[Hashes, Hashes]:
        """Two keyed hashes of each chunk of at most MAX_CHUNK characters."""
        first_W, second_W = map(self._sums, keys())
        first_W ^= first_W >> np.uint64(31)  # slots are taken from the low bits, which mix least
        turned_W = np.bitwise_or(second_W << np.uint64(7), second_W >> np.uint64(57))
        return first_W, np.bitwise_xor(turned_W, self.sizes_W.astype(np.uint64))

    def _sums(self, key: Key) -> Hashes:
        """Of each chunk: a difference of sums over the whole batch, moved back to the power 0."""
        powers, inverses = key.upto(len(self.codes_C) + 1)
        values_C = key.take(self.codes_C)
        values_C *= powers[: len(values_C)]
        sums = np.zeros(len(values_C) + 1, np.uint64)
        np.cumsum(values_C, out=sums[1:])
        return (sums.take(self.begins_W + self.sizes_W) - sums.take(self.begins_W)) * inverses.take(self.begins_W)

    def texts(self, chosen: Ints) -> list[str]:
        """The chosen chunks as strings."""
        sizes = self.sizes_W[chosen]
        edges = cumulative(sizes)
        place = np.arange(int(edges[-1])) - np.repeat(edges[:-1], sizes)
        joined = self.codes_C[np.repeat(self.begins_W[chosen], sizes) + place].tobytes().decode("utf-32-le")
        return [joined[begin:end] for begin, end in pairwise(edges.tolist())]


class ChunkLookup:
    """Ids of texts from the ids of their chunks."""

    def __init__(self, tokenizer: Tokenizer, structure: structures.Structure) -> None:
        self.tokenizer, self.structure = tokenizer, structure
        self.table = Table()
        self.share_new = 1.0  # of the chunks lately looked up
        self.locks: dict[int, threading.Lock] = {}
        self.safe = np.zeros(0x110000, np.int8)  # 0 not asked yet, 1 safe beside a cut, 2 not
        self.tokenize = ChunkTokenizer(tokenizer, structure)

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

    def _cut(self, codes_C: Codes, sizes_B: Ints) -> tuple[Chunks, Ints]:
        """The chunks, and whose each is."""
        starts = cumulative(sizes_B)
        spaces = np.flatnonzero(codes_C == SPACE)
        inside = spaces[(spaces > 0) & (spaces < len(codes_C) - 1)]
        edge = np.zeros(len(codes_C) + 1, bool)
        edge[starts] = True
        inside = inside[~edge[inside] & ~edge[inside + 1]]  # a text's own first or last space is no cut
        cuts = inside[self._is_safe(codes_C[inside - 1]) & self._is_safe(codes_C[inside + 1])]
        is_begin_C = np.zeros(len(codes_C), bool)
        filled = np.flatnonzero(sizes_B)  # texts with any character
        is_begin_C[starts[filled]] = True
        is_begin_C[cuts + (0 if self.structure.keeps_space else 1)] = True
        begins = np.flatnonzero(is_begin_C)
        is_first = edge.take(begins)
        text_of = filled.take(np.cumsum(is_first) - 1)
        ends = np.append(begins[1:], len(codes_C))
        if not self.structure.keeps_space:  # the space between two chunks of one text is nobody's
            ends[:-1] -= ~is_first[1:]
        return Chunks(codes_C, begins, ends - begins), text_of

    def _is_safe(self, codes: Codes) -> NDArray[np.bool_]:
        known = self.safe[codes]
        if (known == 0).any():
            for code in np.unique(codes[known == 0]).tolist():
                self.safe[code] = 1 if structures.is_safe(code, self.tokenizer, self.structure) else 2
            known = self.safe[codes]
        return known == 1

    def is_safe(self, character: str) -> bool:
        """Whether a character may stand beside a cut."""
        code = ord(character)
        known = self.safe.item(code)
        return known == 1 if known else bool(self._is_safe(np.array([code], np.uint32))[0])

    def _entries(self, chunks: Chunks) -> tuple[NDArray[np.int32], Table]:
        """The entry of each chunk, or below 0 for those that can't be kept; unknown ones are tokenized and added."""
        is_short_W = chunks.sizes_W <= MAX_CHUNK
        hashes_W, others_W = chunks.hashes()
        table = self.table
        found_W = np.where(is_short_W, table.known(hashes_W, others_W), -2)
        num_new = np.count_nonzero(found_W == -1)
        self.share_new = (self.share_new + num_new / max(len(found_W), 1)) / 2
        if num_new:
            with self.locks.setdefault(os.getpid(), threading.Lock()):  # a forked child's holder may be gone
                table = self._learn(chunks, hashes_W, others_W, np.flatnonzero(is_short_W))
            found_W = np.where(is_short_W, table.known(hashes_W, others_W), -2)
        return found_W, table

    def _learn(self, chunks: Chunks, hashes_W: Hashes, others_W: Hashes, wanted: Ints) -> Table:
        """A table that has these chunks, as far as it can hold them; only for who holds the lock."""
        for _ in range(2):
            missing = wanted[self.table.find(hashes_W[wanted]) == -1]
            _, first = np.unique(hashes_W[missing], return_index=True)
            if self.table.has_room(len(first)):
                break
            self.table = Table()  # full: readers keep the old one until they are done
        table, fresh = self.table, missing[np.sort(first)][:MAX_ENTRIES]  # words of one text are tokenized faster
        if len(fresh):
            order, ids, lengths, counts = self.tokenize(chunks.texts(fresh), self._can_join(chunks, fresh))
            table.add(hashes_W[fresh[order]], others_W[fresh[order]], ids, lengths, counts)
        if not table.has_room(0):
            self.table = Table()
        return table

    def _can_join(self, chunks: Chunks, chosen: Ints) -> NDArray[np.bool_]:
        """Which of these chunks have a safe character at both ends, so that a cut may be made there."""
        first, last = chunks.begins_W[chosen], chunks.begins_W[chosen] + chunks.sizes_W[chosen] - 1
        is_safe = self._is_safe(chunks.codes_C[last])
        if self.structure.keeps_space:
            is_safe &= chunks.codes_C[first] == SPACE  # else it is the first of its text, and no other may be before it
            first = np.minimum(first + 1, last)
        return is_safe & self._is_safe(chunks.codes_C[first])

    def _join(self, table: Table, entries_W: NDArray[np.int32], counts_W: Ints) -> Ids:
        offsets_W = cumulative(counts_W)
        shifts_W = table.id_starts.take(entries_W) - offsets_W[:-1]
        return table.ids.take(np.repeat(shifts_W, counts_W) + np.arange(offsets_W[-1]))


def to_codes(texts: Sequence[str]) -> tuple[Codes, Ints]:
    """All characters in one row, and how many each text has; a lone surrogate becomes U+FFFD."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    if len(codes) and codes.max() >= 0xD800 and (lone := (codes >= 0xD800) & (codes < 0xE000)).any():
        codes = np.where(lone, np.uint32(REPLACEMENT), codes)
    return codes, np.fromiter(map(len, texts), np.int64, len(texts))


def encode_whole(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ids, Ints]:
    """Flat ids and lengths straight from `tokenizers`, which refuses lone surrogates: they become U+FFFD."""
    clean = [text if text.isascii() or not LONE.search(text) else LONE.sub("\ufffd", text) for text in texts]
    return flatten([found.ids for found in tokenizer.encode_batch_fast(clean, add_special_tokens=False)])


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
