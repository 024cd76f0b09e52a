"""Ids of new chunks from `tokenizers`: many chunks in a row as one text, not each by itself.

`tokenizers` takes as long for a word alone as for two or three in a row. By the rule of text/structures.py no chunk
changes another's ids; what is left to find is where those of each begin:

- `metaspace`, with a piece `▁`: the first id of a chunk is that of a piece with `▁` in front, as its first character is
  safe. Where such ids are as many as the chunks, each has one.
- Else there is a separator between them, a chunk too, which always gives its own ids. Where the last of them comes up
  as often as separators were put in, no chunk has it.

A row in which they are more, or that holds an added token, is taken chunk by chunk. Plain words (text/plain.py) come
before all that and take a shorter way.
"""

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.text import structures
from munjang.text.flat import cumulative, flatten
from munjang.text.plain import PlainWords
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
        self.plain = PlainWords(tokenizer, structure, [*self.added, *self.added_normal])
        self.is_added = np.zeros(max(added, default=0) + 2, bool)  # by id; the last is for all above
        self.is_added[list(added)] = True
        self.gap = "" if structure.keeps_space else " "  # in front of a chunk in a row; else it has its own
        self.begins: NDArray[np.int8] | None = None  # by id: 0 not asked yet, 1 with `▁` in front, 2 not
        self.separator, self.separator_ids = "", [-1]
        if structure.name == "metaspace" and tokenizer.token_to_id("▁") is not None:
            self.begins = np.zeros(max(len(self.is_added), tokenizer.get_vocab_size()), np.int8)
        else:
            self.separator, self.separator_ids = self._separator(structure)

    def __call__(self, texts: list[str], joins: NDArray[np.bool_]) -> tuple[Ints, Ids, Ints, Ints]:
        """The chunks' order, their flat ids in it, how many each has, and what to say of it.

        That is its number of ids, or WHOLE for chunks that hold an added token. `joins` says which chunks may stand
        in a row with others: those that have a safe character at both ends.
        """
        if self.plain.are_plain(texts) and (found := self.plain(texts)) is not None:
            lengths = np.array(found[1], np.int64)
            return np.arange(len(texts)), np.array(found[0], np.int32), lengths, lengths
        is_plain = np.fromiter((self.plain.is_row(text) is not None for text in texts), bool, len(texts))
        places = np.flatnonzero(is_plain)
        found = self.plain([texts[place] for place in places.tolist()]) if len(places) else None
        if found is None:
            return self.others(texts, joins, np.arange(len(texts)))
        order, ids, lengths, counts = self.others(texts, joins, np.flatnonzero(~is_plain))
        order, ids = np.concatenate([places, order]), np.concatenate([np.array(found[0], np.int32), ids])
        own = np.array(found[1], np.int64)
        return order, ids, np.concatenate([own, lengths]), np.concatenate([own, counts])

    def others(self, texts: list[str], joins: NDArray[np.bool_], chosen: Ints) -> tuple[Ints, Ids, Ints, Ints]:
        """The same for chosen chunks that need not be plain."""
        can_join = joins[chosen] & (self.begins is not None or bool(self.separator))
        joined, flat, lengths = self._in_rows(texts, chosen[can_join])
        if len(joined) == len(chosen):
            return joined, flat, lengths, lengths
        is_rest = np.zeros(len(texts), bool)
        is_rest[chosen] = True
        is_rest[joined] = False
        rest = np.flatnonzero(is_rest)
        alone = [texts[place] for place in rest.tolist()]
        rest_flat, rest_lengths = flatten(self._encode(alone))
        rest_counts = np.where(self._hold_added(alone, rest_flat, rest_lengths), WHOLE, rest_lengths)
        order, ids = np.concatenate([joined, rest]), np.concatenate([flat, rest_flat])
        return order, ids, np.concatenate([lengths, rest_lengths]), np.concatenate([lengths, rest_counts])

    def _in_rows(self, texts: list[str], places: Ints) -> tuple[Ints, Ids, Ints]:
        """The places of the chunks that could be tokenized in rows, their ids, and how many each has."""
        separator = f" {self.separator}" if self.separator else ""
        words = [texts[place] for place in places.tolist()]
        parts = [words[start : start + ROW] for start in range(0, len(words), ROW)]
        rows = [f"{separator}{self.gap}".join(part) + separator for part in parts]
        flat, lengths = flatten(self._encode(rows))
        is_mark = flat == self.separator_ids[-1] if self.begins is None else self._begin(flat, self.begins)
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        good = _per_text(is_mark, lengths) == sizes
        good &= ~self._hold_added(rows, flat, lengths)
        if not good.all():
            keep = np.repeat(good, lengths)
            flat, is_mark, places = flat[keep], is_mark[keep], places[np.repeat(good, sizes)]
        marks = np.flatnonzero(is_mark)
        if self.begins is not None:
            return places, flat, np.diff(marks, append=len(flat))
        num_own = len(self.separator_ids)
        for back in range(1, num_own):
            is_mark[marks - back] = True
        return places, flat[~is_mark], np.diff(marks, prepend=-1) - num_own

    def _begin(self, flat: Ids, begins: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Which ids are of pieces with `▁` in front."""
        known = begins[flat]
        if not known.all():
            for token in np.unique(flat[known == 0]).tolist():
                begins[token] = 1 if str(self.tokenizer.id_to_token(token)).startswith("▁") else 2
            known = begins[flat]
        return known == 1

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


def _per_text(marked: NDArray[np.bool_], lengths: Ints) -> Ints:
    """How many marked ids each text has."""
    before = cumulative(marked.astype(np.int64))[cumulative(lengths)]
    return before[1:] - before[:-1]
