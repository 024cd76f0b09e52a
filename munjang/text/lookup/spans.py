"""Spans: the parts between safe spaces that a text is cut into, and the keyed hashes that a table knows them by.

C characters of the whole batch, W spans, B texts.

A span is known by 128 bits: two sums of its characters modulo 2^64, each character being a random number of its own
that is multiplied by a power of a random odd one for its place. All of them come from the system's entropy once for
each process and are never shown. Two different spans of at most 64 characters agree in one sum with a chance of at
most 2^-38, however they were chosen (worst: two characters in Thue-Morse order, where the powers' difference ends in
26 zero bits), in both with 2^-76; ordinary words with 2^-120. The numbers per character are needed: with the codes
themselves, whose differences someone may choose, (x^2 - 1)^22 is 0 for every odd x.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.text.flat import cumulative
from munjang.text.lookup.structures import Structure, is_safe
from munjang.types import Ints

MAX_SPAN_CHARACTERS = 64  # longer spans are not kept, their text goes whole
PLANE_CHARACTERS = 0x10000  # one plane of Unicode, of 17
SPACE, REPLACEMENT = 0x20, 0xFFFD

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
        """Return the numbers of characters; those of a plane of Unicode are drawn when it first comes up."""
        values = self.values
        try:
            return values.take(codes_C)
        except IndexError:  # the same numbers for every thread that comes here
            planes = range(len(values) // PLANE_CHARACTERS, int(codes_C.max()) // PLANE_CHARACTERS + 1)
            self.values = np.concatenate([values, *map(self._plane, planes)])
            return self.take(codes_C)

    def _plane(self, plane: int) -> Hashes:
        return np.random.default_rng([*self.seed, plane]).integers(0, 1 << 64, PLANE_CHARACTERS, np.uint64)

    def upto(self, size: int) -> tuple[Hashes, Hashes]:
        """Return at least `size` powers of the odd number and of its inverse."""
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
    """Draw the two keys of this process and of those forked from it."""
    return Key(), Key()


@dataclass(frozen=True)
class Spans:
    """The spans of a batch: where they stand in its row of characters, and whose they are."""

    codes_C: Codes
    begins_W: Ints
    sizes_W: Ints
    text_of_W: Ints

    def hashes(self) -> tuple[Hashes, Hashes]:
        """Return two keyed hashes of each span of at most MAX_SPAN_CHARACTERS."""
        first_W, second_W = map(self._sums, keys())
        first_W ^= first_W >> np.uint64(31)  # slots are taken from the low bits, which mix least
        turned_W = np.bitwise_or(second_W << np.uint64(7), second_W >> np.uint64(57))
        return first_W, np.bitwise_xor(turned_W, self.sizes_W.astype(np.uint64))

    def _sums(self, key: Key) -> Hashes:
        """Sum up each span: a difference of sums over the whole batch, moved back to the power 0."""
        powers, inverses = key.upto(len(self.codes_C) + 1)
        values_C = key.take(self.codes_C)
        values_C *= powers[: len(values_C)]
        sums = np.zeros(len(values_C) + 1, np.uint64)
        np.cumsum(values_C, out=sums[1:])
        return (sums.take(self.begins_W + self.sizes_W) - sums.take(self.begins_W)) * inverses.take(self.begins_W)

    def strings(self, chosen: Ints) -> list[str]:
        """Return the chosen spans as strings."""
        sizes = self.sizes_W[chosen]
        edges = cumulative(sizes)
        within = np.arange(int(edges[-1])) - np.repeat(edges[:-1], sizes)
        joined = self.codes_C[np.repeat(self.begins_W[chosen], sizes) + within].tobytes().decode("utf-32-le")
        return [joined[begin:end] for begin, end in pairwise(edges.tolist())]


class SafeCharacters:
    """Tells which characters may stand beside a cut; each is asked for once."""

    def __init__(self, tokenizer: Tokenizer, structure: Structure) -> None:
        self.tokenizer, self.structure = tokenizer, structure
        self.kinds = bytearray(0x110000)  # by code: 0 not asked yet, 1 safe, 2 not
        self.kinds_array = np.frombuffer(self.kinds, np.uint8)  # the same memory

    def are_safe(self, codes: Codes) -> NDArray[np.bool_]:
        """Tell for each of these characters whether it is safe."""
        kinds = self.kinds_array[codes]
        if not kinds.all():
            for code in np.unique(codes[kinds == 0]).tolist():
                self._ask(code)
            kinds = self.kinds_array[codes]
        return kinds == 1

    def __contains__(self, character: str) -> bool:
        code = ord(character)
        return (self.kinds[code] or self._ask(code)) == 1

    def _ask(self, code: int) -> int:
        self.kinds[code] = kind = 1 if is_safe(code, self.tokenizer, self.structure) else 2
        return kind


def cut(texts: Sequence[str], safe: SafeCharacters) -> Spans:
    """Cut texts at every space between two safe characters; where spans keep it, it begins the one behind it."""
    codes_C, sizes_B = to_codes(texts)
    keeps_space, starts = safe.structure.keeps_space, cumulative(sizes_B)
    spaces = np.flatnonzero(codes_C == SPACE)
    inside = spaces[(spaces > 0) & (spaces < len(codes_C) - 1)]
    is_edge = np.zeros(len(codes_C) + 1, bool)
    is_edge[starts] = True
    inside = inside[~is_edge[inside] & ~is_edge[inside + 1]]  # a text's own first or last space is no cut
    cuts = inside[safe.are_safe(codes_C[inside - 1]) & safe.are_safe(codes_C[inside + 1])]
    is_begin_C = np.zeros(len(codes_C), bool)
    filled = np.flatnonzero(sizes_B)  # texts with any character
    is_begin_C[starts[filled]] = True
    is_begin_C[cuts + (0 if keeps_space else 1)] = True
    begins_W = np.flatnonzero(is_begin_C)
    is_first_W = is_edge.take(begins_W)
    ends_W = np.append(begins_W[1:], len(codes_C))
    if not keeps_space:  # the space between two spans of one text is nobody's
        ends_W[:-1] -= ~is_first_W[1:]
    return Spans(codes_C, begins_W, ends_W - begins_W, filled.take(np.cumsum(is_first_W) - 1))


def to_codes(texts: Sequence[str]) -> tuple[Codes, Ints]:
    """Return all characters in one row, and how many each text has; a lone surrogate becomes U+FFFD."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    if len(codes) and codes.max() >= 0xD800 and (lone := (codes >= 0xD800) & (codes < 0xE000)).any():
        codes = np.where(lone, np.uint32(REPLACEMENT), codes)
    return codes, np.fromiter(map(len, texts), np.int64, len(texts))
