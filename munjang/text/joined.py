"""Ids of new chunks from `tokenizers`: many chunks in one text with a separator between them, not each by itself.

`tokenizers` takes as long for a word alone as for two or three in a row. The separator is a chunk too, so by the rule
of text/structures.py it changes nothing beside it, and it always gives its own ids. Where the last of them comes up as
often as separators were put in, no chunk has it, and what is between two separators are the ids of one chunk. A row of
chunks in which it comes up more often, or that holds an added token, is taken chunk by chunk.
"""

from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.text import structures
from munjang.text.flat import cumulative
from munjang.types import Ids, Ints

ROW = 32  # chunks in one text
SEPARATORS = "‡†§¶•^~|`zqx"  # rare ones first; the one with the fewest tokens is taken
WHOLE = -1  # instead of a count: this chunk can't be taken out of its text


class ChunkTokenizer:
    """Tokenizes chunks for the table, and finds those with an added token."""

    def __init__(self, tokenizer: Tokenizer, structure: structures.Structure) -> None:
        self.tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder()
        self.added = [token.content for token in added.values()]
        normalizer = tokenizer.normalizer
        self.normalize = (lambda text: text) if normalizer is None else normalizer.normalize_str
        self.added_normal = [self.normalize(content) for content in self.added]
        self.is_added = np.zeros(max(added, default=0) + 2, bool)  # by id; the last is for all above
        self.is_added[list(added)] = True
        self.gap = "" if structure.keeps_space else " "  # in front of a chunk in a row; else it has its own
        self.separator, self.separator_ids = self._separator(structure)

    def __call__(self, texts: list[str], joins: NDArray[np.bool_]) -> tuple[Ints, Ids, Ints, Ints]:
        """The chunks' order, their flat ids in it, how many each has, and what to say of it.

        That is its number of ids, or WHOLE for chunks that hold an added token. `joins` says which chunks may stand
        in a row with others: those that have a safe character at both ends.
        """
        joined, flat, lengths = self._in_rows(texts, np.flatnonzero(joins & bool(self.separator)))
        if len(joined) == len(texts):
            return joined, flat, lengths, lengths
        is_rest = np.ones(len(texts), bool)
        is_rest[joined] = False
        rest = np.flatnonzero(is_rest)
        alone = [texts[place] for place in rest.tolist()]
        rest_flat, rest_lengths = _flat(self._encode(alone))
        rest_counts = np.where(self._hold_added(alone, rest_flat, rest_lengths), WHOLE, rest_lengths)
        order, ids = np.concatenate([joined, rest]), np.concatenate([flat, rest_flat])
        return order, ids, np.concatenate([lengths, rest_lengths]), np.concatenate([lengths, rest_counts])

    def _in_rows(self, texts: list[str], places: Ints) -> tuple[Ints, Ids, Ints]:
        """The places of the chunks that could be tokenized in rows, their ids, and how many each has."""
        between, end = f" {self.separator}{self.gap}", f" {self.separator}"
        words = [texts[place] for place in places.tolist()]
        parts = [words[start : start + ROW] for start in range(0, len(words), ROW)]
        rows = [between.join(part) + end for part in parts]
        flat, lengths = _flat(self._encode(rows))
        is_end = flat == self.separator_ids[-1]
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        good = _per_text(is_end, lengths) == sizes
        good &= ~self._hold_added(rows, flat, lengths)
        if not good.all():
            keep = np.repeat(good, lengths)
            flat, is_end, places = flat[keep], is_end[keep], places[np.repeat(good, sizes)]
        ends = np.flatnonzero(is_end)
        num_own = len(self.separator_ids)
        for back in range(1, num_own):
            is_end[ends - back] = True
        return places, flat[~is_end], np.diff(ends, prepend=-1) - num_own

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [found.ids for found in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _hold_added(self, texts: list[str], flat: Ids, lengths: Ints) -> NDArray[np.bool_]:
        """Which texts hold an added token: of those with the id of one, as a word may be unknown and have that id."""
        hold = _per_text(self.is_added.take(flat, mode="clip"), lengths) > 0
        for place in np.flatnonzero(hold).tolist():
            hold[place] = self._holds_added(texts[place])
        return hold

    def _holds_added(self, text: str) -> bool:
        if any(content in text for content in self.added):
            return True
        shown = self.normalize(text)
        return any(content in shown for content in self.added_normal)

    def _separator(self, structure: structures.Structure) -> tuple[str, list[int]]:
        """A character and its ids, of which the last one is not among the others; none: an empty one."""
        best: tuple[str, list[int]] = ("", [-1])
        for character in SEPARATORS:
            if not structures.is_safe(ord(character), self.tokenizer, structure) or self._holds_added(character):
                continue
            ids = self.tokenizer.encode(f"{'' if self.gap else ' '}{character}", add_special_tokens=False).ids
            is_known = ids and str(self.tokenizer.id_to_token(ids[-1])).endswith(character) and ids.count(ids[-1]) == 1
            if is_known and (not best[0] or len(ids) < len(best[1])):
                best = character, ids
        return best


def _flat(ids: list[list[int]]) -> tuple[Ids, Ints]:
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    return np.fromiter(chain.from_iterable(ids), np.int32, int(lengths.sum())), lengths


def _per_text(marked: NDArray[np.bool_], lengths: Ints) -> Ints:
    """How many marked ids each text has."""
    before = cumulative(marked.astype(np.int64))[cumulative(lengths)]
    return before[1:] - before[:-1]
