"""Small calls: the words of a few texts from a dictionary, which takes less time for them than numpy's calls.

Words are chunks as in text/lookup.py: cut at single spaces between safe characters, and exact for the same reason.
New ones go to `tokenizers` all at once and are kept. The dictionary is bounded: when it is full it starts again.
Threads need no lock: an entry never changes, and none is taken out of a dictionary that a call holds.
"""

from array import array
from collections.abc import Sequence
from itertools import chain, filterfalse

import numpy as np

from munjang.text.joined import WHOLE
from munjang.text.lookup import LONE, MAX_CHUNK, ChunkLookup

MAX_WORDS = 1 << 16  # about 15 MB with their ids
MAX_BYTES = 1 << 24  # of ids: a dictionary of hostile words is full sooner
KNOWN = 130  # characters of known words that save the time it takes to learn the others
NONE_NEW = 5  # characters, expected: less than a word
TURN = 2048  # characters of calls with fewer known ones, after which one is learned from: it takes longer, and serves
STEP = 128  # characters of a call that count at most: all but short calls take turns, one of sixteen learns
CUT = "\0"  # put in front of each space where words keep it


class WordLookup:
    """Ids of texts from the ids of their words."""

    def __init__(self, chunks: ChunkLookup) -> None:
        self.tokenize, self.keeps_space, self.is_safe = chunks.tokenize, chunks.structure.keeps_space, chunks.is_safe
        self.known: dict[str, bytes] = {}
        self.num_bytes = self.turn = 0
        self.share_new = 1.0  # of the words lately looked up

    def __call__(self, texts: Sequence[str], size: int) -> list[bytes]:
        """The ids of each text, without special tokens, as they lie in memory; `size` is that of all texts."""
        new = size * self.share_new
        if new > NONE_NEW and size - new < KNOWN + new / 2:  # going by the last ones, too few words are known
            self.turn += min(size, STEP)
            if self.turn < TURN:
                return self._whole(texts)
            self.turn = 0
        known, words_B = self.known, [self._split(text) for text in texts]
        try:
            bodies = [b"".join([known[word] for word in words]) for words in words_B]
            self.share_new /= 2
            return bodies
        except KeyError:
            missing = list(dict.fromkeys(filterfalse(known.__contains__, chain.from_iterable(words_B))))
        self.share_new = (self.share_new + len(missing) / sum(map(len, words_B))) / 2
        if len(known) + len(missing) > MAX_WORDS or self.num_bytes > MAX_BYTES:
            self.known, self.num_bytes = (known := {}), 0
            missing = list(dict.fromkeys(chain.from_iterable(words_B)))
        odd = self._learn(known, missing)
        if not odd:
            return [b"".join([known[word] for word in words]) for words in words_B]
        return [
            b"".join([known[word] for word in words]) if odd.isdisjoint(words) else self._alone(text)
            for words, text in zip(words_B, texts, strict=True)
        ]

    def _whole(self, texts: Sequence[str]) -> list[bytes]:
        if len(texts) == 1 and self.tokenize.plain.is_row(texts[0]):  # whose time is that of every step
            alone = self.tokenize.plain.texts(texts)
            return [self._alone(texts[0]) if alone is None else array("i", alone[0]).tobytes()]
        is_plain = [match is not None for match in map(self.tokenize.plain.is_row, texts)]
        plain = [text for text, is_one in zip(texts, is_plain, strict=True) if is_one]
        found = self.tokenize.plain.texts(plain) if plain else None
        if found is None:
            return [self._alone(text) for text in texts]
        bodies = (array("i", ids).tobytes() for ids in found)
        return [next(bodies) if is_one else self._alone(text) for text, is_one in zip(texts, is_plain, strict=True)]

    def _alone(self, text: str) -> bytes:
        """Straight from `tokenizers`, in this thread: it hands more than one text to others."""
        clean = text if text.isascii() else LONE.sub("\ufffd", text)
        return array("i", self.tokenize.tokenizer.encode_batch_fast([clean], add_special_tokens=False)[0].ids).tobytes()

    def _split(self, text: str) -> list[str]:
        if not self.keeps_space:
            return text.split(" ")
        return text.replace(" ", CUT + " ").split(CUT) if CUT not in text else [""]

    def _learn(self, known: dict[str, bytes], missing: list[str]) -> set[str]:
        """Tokenize and keep words; gives those that can't be kept."""
        plain, words, others = self.tokenize.plain, missing, list[str]()
        if not plain.are_plain(words):
            words = [word for word in missing if plain.is_row(word)]
            others = [word for word in set(missing).difference(words) if self._can_be_kept(word)]
        if words and (found := plain(words)) is not None:
            self._keep(known, words, array("i", found[0]).tobytes(), found[1])
        else:
            others += words
        if others:
            joins = np.array([not self.keeps_space or word[0] == " " for word in others])
            order, ids, lengths, counts = self.tokenize.others(others, joins, np.arange(len(others)))
            is_kept = counts != WHOLE
            kept = [others[place] for place in order[is_kept].tolist()]
            self._keep(known, kept, ids[np.repeat(is_kept, lengths)].tobytes(), lengths[is_kept].tolist())
        return set(filterfalse(known.__contains__, missing))

    def _keep(self, known: dict[str, bytes], words: list[str], ids: bytes, lengths: list[int]) -> None:
        self.num_bytes += len(ids)
        end = 0
        for word, length in zip(words, lengths, strict=True):
            begin, end = end, end + 4 * length
            known[word] = ids[begin:end]

    def _can_be_kept(self, word: str) -> bool:
        bare = word.removeprefix(" ") if self.keeps_space else word
        return (
            bare != ""
            and len(word) <= MAX_CHUNK
            and self.is_safe(bare[0])
            and self.is_safe(bare[-1])
            and (word.isascii() or LONE.search(word) is None)
        )
