"""Texts to flat ids without special tokens: by chunk look-up where that is exact, else by `tokenizers`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from tokenizers import Tokenizer

from munjang.text import structures
from munjang.text.lookup import ChunkLookup, encode_whole
from munjang.text.words import WordLookup
from munjang.types import Ids, Ints

GROUP = 1 << 18  # characters tokenized together: each takes 40 bytes and more on the way, better in the cache
SMALL = 1 << 14  # characters of a call whose words are looked up one by one: fewer than numpy's calls pay for
WARM = 0.1  # share of new chunks below which numpy's table is used from
LARGE = 1 << 11  # characters on


class Bodies:
    """The part of a tokenizer that all the time goes to."""

    def __init__(self, rust: Tokenizer) -> None:
        structure = structures.find(rust)
        self.rust = rust
        self.lookup = None if structure is None else ChunkLookup(rust, structure)
        self.words = None if self.lookup is None else WordLookup(self.lookup)

    def __call__(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Flat ids, and how many each text has."""
        if not texts:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        if (parts := self.few(texts)) is not None:
            return from_bytes(bytearray().join(parts)), np.array([len(part) // 4 for part in parts])
        if self.lookup is None and len(texts) == 1:  # whose time is that of numpy's calls
            return encode_whole(self.rust, texts)
        flat, lengths = zip(*map(self._group, groups(texts)), strict=True)
        return np.concatenate(flat), np.concatenate(lengths)

    def few(self, texts: Sequence[str]) -> list[bytes] | None:
        """The ids of each of a few texts as bytes; nothing if there are too many, or none."""
        if self.words is None or self.lookup is None or not 0 < len(texts) <= SMALL // 16:
            return None
        size = sum(map(len, texts))
        if size >= SMALL or (size >= LARGE and self.lookup.share_new < WARM):
            return None
        return self.words(texts, size)

    def _group(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        return encode_whole(self.rust, texts) if self.lookup is None else self.lookup(texts)


def from_bytes(buffer: bytearray) -> Ids:
    """Ids as they lie in memory, not copied."""
    return np.ndarray(len(buffer) // 4, np.int32, buffer)


def groups(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in their order, as many at a time as have about GROUP characters."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    cuts = np.searchsorted(ends, np.arange(GROUP, int(ends[-1]), GROUP)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(texts)]])).tolist()
    return (texts[a:b] for a, b in pairwise(edges))
