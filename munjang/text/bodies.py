"""Texts to flat ids without special tokens: by chunk look-up where that is exact, else by `tokenizers`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from tokenizers import Tokenizer

from munjang.text import structures
from munjang.text.lookup import ChunkLookup, encode_whole
from munjang.types import Ids, Ints

GROUP = 1 << 18  # characters tokenized together: each takes 40 bytes and more on the way, better in the cache
SMALL = 4096  # characters of a call that may be too few to learn new chunks from
KNOWN = 1000  # characters of known chunks that save the time numpy takes for learning the others
NONE_NEW = 3  # characters, expected: less than a chunk
TURNS = 32  # of so many small calls, one is looked up although that takes longer: what it learns serves the next
SHORT = 400  # characters of a lone text that `tokenizers` takes less time for than numpy's calls do


class Bodies:
    """The part of a tokenizer that all the time goes to."""

    def __init__(self, rust: Tokenizer) -> None:
        structure = structures.find(rust)
        self.rust = rust
        self.lookup = None if structure is None else ChunkLookup(rust, structure)
        self.turn = 0

    def __call__(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Flat ids, and how many each text has."""
        if not texts:
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        if len(texts) == 1 and len(texts[0]) < SHORT:
            return encode_whole(self.rust, texts)
        if self._is_too_new(texts):
            return encode_whole(self.rust, texts)
        flat, lengths = zip(*map(self._group, groups(texts)), strict=True)
        return np.concatenate(flat), np.concatenate(lengths)

    def _is_too_new(self, texts: Sequence[str]) -> bool:
        """Whether these are few and, going by the last ones, so new that `tokenizers` is faster than learning them."""
        if self.lookup is None or len(texts) > SMALL or (size := sum(map(len, texts))) >= SMALL:
            return False
        new = size * self.lookup.share_new
        if new < NONE_NEW or size - new >= KNOWN:
            return False
        self.turn = (self.turn + 1) % TURNS
        return self.turn != 0

    def _group(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        return encode_whole(self.rust, texts) if self.lookup is None else self.lookup(texts)


def groups(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in their order, as many at a time as have about GROUP characters."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    cuts = np.searchsorted(ends, np.arange(GROUP, int(ends[-1]), GROUP)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(texts)]])).tolist()
    return (texts[a:b] for a, b in pairwise(edges))
