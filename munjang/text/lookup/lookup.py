"""The tokenizer's look-up: texts to ids by the spans that they are made of, with the ids that `tokenizers` gives.

1. Texts are cut at safe spaces into spans, mostly words (spans.py).
2. A table maps a span, by two keyed hashes, to its ids (table.py). The ids of a text are those of its spans in a row.
3. Unknown spans are tokenized by `tokenizers` and added (unknown.py; plain.py: those that need few of its steps).
   A full table starts again from nothing.
4. A text with a span that can't be kept, as it is too long or holds an added token, goes whole through `tokenizers`.

All of it is array code over the whole batch, 16 times as fast as `tokenizers` once the words are known. A call with a
few texts takes the same steps with a dictionary as its table (few.py): 2 µs for a sentence, where numpy takes 90.
structures.py lists the tokenizers that this is exact for, and says why; for any other there is no look-up.

C characters of the whole batch, W spans, B texts.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.errors import InputError
from munjang.text.flat import flatten
from munjang.text.lookup import structures, table
from munjang.text.lookup.few import FewTexts
from munjang.text.lookup.spans import MAX_SPAN_CHARACTERS, Hashes, SafeCharacters, Spans, cut
from munjang.text.lookup.table import NOT_KEPT, OTHER, UNKNOWN, Table
from munjang.text.lookup.unknown import SpanTokenizer, without_surrogates
from munjang.types import Ids, Ints

MAX_CHARACTERS_AT_ONCE = 1 << 18  # each takes 40 bytes and more on the way, better in the cache
MAX_SPANS_AT_ONCE = 1 << 13  # unknown ones, tokenized together
MAX_FEW_CHARACTERS = 1 << 13  # of a call that takes the dictionary
MAX_FEW_TEXTS = 1 << 10


class SpanLookup:
    """Puts the ids of texts together from those of their spans; any number of threads may call it."""

    def __init__(self, tokenizer: Tokenizer, structure: structures.Structure) -> None:
        self.tokenizer, self.structure = tokenizer, structure
        self.safe = SafeCharacters(tokenizer, structure)
        self.tokenize = SpanTokenizer(tokenizer, self.safe)
        self.table = Table()
        self.few_texts = FewTexts(self.tokenize)
        self.locks: dict[int, threading.Lock] = {}

    def __call__(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Return flat ids without special tokens, and how many each text has."""
        bodies = self.few(texts)
        if bodies is not None:
            return from_bytes(bytearray().join(bodies)), np.array([len(body) // 4 for body in bodies])
        return by_groups(self.look_up, texts)

    def few(self, texts: Sequence[str]) -> list[bytes] | None:
        """Return the ids of each of a few texts as bytes of int32; None if there are none or too many."""
        if not 0 < len(texts) <= MAX_FEW_TEXTS or sum(map(len, texts)) >= MAX_FEW_CHARACTERS:
            return None
        return self.few_texts(texts)

    def look_up(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Return flat ids and lengths by the table, for as many texts as fit into memory at once."""
        spans = cut(texts, self.safe)
        entries_W, known = self._entries(spans)
        counts_W = np.where(entries_W >= 0, known.id_counts[entries_W], NOT_KEPT)
        goes_whole_W = counts_W == NOT_KEPT
        if not goes_whole_W.any():
            return known.join(entries_W, counts_W), _per_text(spans.text_of_W, counts_W, len(texts))
        goes_whole_B = np.zeros(len(texts), bool)
        goes_whole_B[spans.text_of_W[goes_whole_W]] = True
        keep_W = ~goes_whole_B[spans.text_of_W]
        flat = known.join(entries_W[keep_W], counts_W[keep_W])
        lengths_B = _per_text(spans.text_of_W[keep_W], counts_W[keep_W], len(texts))
        rows = np.flatnonzero(goes_whole_B)
        return _merge(flat, lengths_B, rows, encode_whole(self.tokenizer, [texts[row] for row in rows.tolist()]))

    def _entries(self, spans: Spans) -> tuple[NDArray[np.int32], Table]:
        """Return the entry of each span, below 0 for those that can't be kept; unknown ones are tokenized and added."""
        is_short_W = spans.sizes_W <= MAX_SPAN_CHARACTERS
        hashes_W, second_W = spans.hashes()
        known = self.table
        entries_W = np.where(is_short_W, known.entries(hashes_W, second_W), OTHER)
        if (entries_W == UNKNOWN).any():
            with self.lock:
                known = self.learn(spans.strings, hashes_W, second_W, np.flatnonzero(is_short_W))
            entries_W = np.where(is_short_W, known.entries(hashes_W, second_W), OTHER)
        return entries_W, known

    @property
    def lock(self) -> threading.Lock:
        """The lock of who adds to the table, or copies it; of this process, as a forked child's holder may be gone."""
        return self.locks.setdefault(os.getpid(), threading.Lock())

    def learn(self, strings_of: Callable[[Ints], list[str]], hashes_W: Hashes, second_W: Hashes, wanted: Ints) -> Table:
        """Return a table that has these spans, as far as it can hold them; only for who holds the lock."""
        for _ in range(2):
            missing = wanted[self.table.find(hashes_W[wanted]) == UNKNOWN]
            _, first = np.unique(hashes_W[missing], return_index=True)
            if self.table.has_room(len(first)):
                break
            self.table = Table()  # full: readers keep the old one until they are done
        known, new = self.table, missing[np.sort(first)][: table.MAX_ENTRIES]  # words of one text are tokenized faster
        if len(new):
            strings, ids_of = strings_of(new), dict[str, bytes]()
            for at in range(0, len(strings), MAX_SPANS_AT_ONCE):  # each takes a kilobyte in `tokenizers`
                ids_of.update(self.tokenize(strings[at : at + MAX_SPANS_AT_ONCE]))
            ids = [ids_of.get(string) for string in strings]
            counts = np.array([NOT_KEPT if body is None else len(body) // 4 for body in ids])
            known.add(hashes_W[new], second_W[new], np.frombuffer(b"".join(filter(None, ids)), np.int32), counts)
        if not known.has_room(0):
            self.table = Table()
        return known


class WholeTexts:
    """Takes the ids of texts straight from `tokenizers`, where the look-up would not be exact."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def __call__(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Return flat ids without special tokens, and how many each text has."""
        return by_groups(partial(encode_whole, self.tokenizer), texts)

    def few(self, texts: Sequence[str]) -> None:
        """Return nothing: a few texts have no way of their own."""


def body_tokenizer(tokenizer: Tokenizer) -> SpanLookup | WholeTexts:
    """Return the look-up of a tokenizer if its structure is on the list, else the tokenizer itself."""
    structure = structures.find(tokenizer)
    return WholeTexts(tokenizer) if structure is None else SpanLookup(tokenizer, structure)


def encode_whole(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Ids, Ints]:
    """Return flat ids and lengths straight from `tokenizers`; lone surrogates become U+FFFD."""
    clean = list(map(without_surrogates, texts))
    try:
        encodings = tokenizer.encode_batch_fast(clean, add_special_tokens=False)
    except BaseException as error:  # a panic of Rust is no Exception: a pattern of tokenizer.json that takes too long
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(f"The model's tokenizer can't cut a text of this call into tokens: {error}") from error
    return flatten([encoding.ids for encoding in encodings])


def by_groups(tokenize: Callable[[Sequence[str]], tuple[Ids, Ints]], texts: Sequence[str]) -> tuple[Ids, Ints]:
    """Tokenize texts in their order, as many at a time as have about MAX_CHARACTERS_AT_ONCE."""
    if not texts:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    if len(texts) == 1:  # whose time is that of numpy's calls
        return tokenize(texts)
    flat, lengths = zip(*map(tokenize, groups(texts)), strict=True)
    return np.concatenate(flat), np.concatenate(lengths)


def from_bytes(buffer: bytearray) -> Ids:
    """Return ids as they lie in memory, not copied."""
    return np.ndarray(len(buffer) // 4, np.int32, buffer)


def groups(texts: Sequence[str], size: int | None = None) -> Iterator[Sequence[str]]:
    """Cut a list of texts where about `size` characters are full; None: MAX_CHARACTERS_AT_ONCE."""
    size = size or MAX_CHARACTERS_AT_ONCE
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    cuts = np.searchsorted(ends, np.arange(size, int(ends[-1]), size)) + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(texts)]])).tolist()
    return (texts[a:b] for a, b in pairwise(edges))


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
