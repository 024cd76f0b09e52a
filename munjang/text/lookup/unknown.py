"""Unknown spans to ids by `tokenizers`: many spans in a row as one text, not each by itself.

`tokenizers` takes as long for a word alone as for two or three in a row. By the rule of structures.py no span changes
another's ids; what is left to find is where those of each begin:

- `metaspace` and `bytelevel`, with a piece `▁` or `Ġ`: the first id of a span is that of a piece with this mark in
  front, as its first character is safe. Where such ids are as many as the spans, each span has one.
- `wordpiece`: a separator stands in front of each span, a span too, which always gives its own id. Where that comes up
  as often as separators were put in, no span has it.

A row in which they are more, or that holds an added token, is taken span by span.
"""

import re
from array import array
from collections.abc import Callable
from itertools import filterfalse

from tokenizers import Tokenizer

from munjang.text.lookup.plain import Plain
from munjang.text.lookup.spans import SafeCharacters

SPANS_PER_ROW = 32
PLAIN_SPANS_PER_ROW = 128  # of more than
MAX_SPANS_IN_ONE_ROW = 512  # one row is tokenized in this thread, and waking others costs as much as 20 words
SEPARATORS = "‡†§¶•^~|`zqx"  # rare ones first
MARKS = {"metaspace": "▁", "bytelevel": "Ġ"}  # how the first piece of a span begins
BEGINS, GOES_ON = b"\1", b"\2"  # of an id; 0: not asked yet
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class SpanTokenizer:
    """Tokenizes unknown spans, and finds those with an added token."""

    def __init__(self, tokenizer: Tokenizer, safe: SafeCharacters) -> None:
        self.tokenizer, self.safe, self.keeps_space = tokenizer, safe, safe.structure.keeps_space
        normalizer = tokenizer.normalizer
        self.normalize = (lambda text: text) if normalizer is None else normalizer.normalize_str
        self.added = tokenizer.get_added_tokens_decoder()
        spelled = [token.content for token in self.added.values()]
        self.plain = Plain(tokenizer, safe.structure, [*spelled, *map(self.normalize, spelled)])
        self.mark, self.separator = MARKS.get(safe.structure.name, ""), ""
        num_ids = tokenizer.get_vocab_size() + 1
        if self.mark:
            self.kinds, self.can_join = bytearray(num_ids), tokenizer.token_to_id(self.mark) is not None
        else:
            self.separator, token = self._separator()
            self.kinds, self.can_join = bytearray(GOES_ON) * max(num_ids, token + 1), bool(self.separator)
            self.kinds[token] = ord(BEGINS)
        self.gap = f" {self.separator} " if self.separator else self.plain.gap

    def __call__(self, spans: list[str]) -> dict[str, bytes]:
        """Return the ids of each of these spans as bytes of int32; one that holds an added token is left out."""
        ids_of: dict[str, bytes] = {}
        plain, others = spans, list[str]()
        if not self.plain.are_all_plain(spans):
            plain, others = [], []
            for span in spans:
                (plain if self.plain.is_row(span) else others).append(span)
        size = MAX_SPANS_IN_ONE_ROW if len(plain) <= MAX_SPANS_IN_ONE_ROW else PLAIN_SPANS_PER_ROW
        others += self._in_rows(plain, size, self.plain.encode, ids_of)
        joining, alone = list[str](), list[str]()
        for span in others:
            (joining if self._joins(span) else alone).append(span)
        alone += self._in_rows(joining, SPANS_PER_ROW, self._encode, ids_of)
        for span, ids in zip(alone, self._encode(alone), strict=True):
            if not self._holds_added(span, ids):
                ids_of[span] = to_bytes(ids)
        return ids_of

    def whole(self, text: str) -> bytes:
        """Return the ids of a text that is not looked up, tokenized in this thread: others share more than one text."""
        if not self.keeps_space and self.plain.is_row(text):
            return to_bytes(self.plain.encode([text])[0])
        return to_bytes(self._encode([without_surrogates(text)])[0])

    def has_safe_ends(self, span: str) -> bool:
        """Tell whether the first and the last character of a span are safe, not counting a space that it keeps."""
        bare = span.removeprefix(" ") if self.keeps_space else span
        return bare != "" and bare[0] in self.safe and bare[-1] in self.safe

    def _joins(self, span: str) -> bool:
        """Tell whether other spans may stand before and behind this one; not before the first one of a text."""
        return (not self.keeps_space or span[0] == " ") and self.has_safe_ends(span)

    def _in_rows(
        self, spans: list[str], size: int, encode: Callable[[list[str]], list[list[int]]], ids_of: dict[str, bytes]
    ) -> list[str]:
        """Add the ids of spans that are tokenized `size` in a row; return those whose row can't be cut."""
        if not self.can_join:
            return spans
        left: list[str] = []
        rows = [spans[start : start + size] for start in range(0, len(spans), size)]
        front, num_own = (f"{self.separator} ", 4) if self.separator else ("", 0)
        texts = [front + self.gap.join(row) for row in rows]
        ids_R = encode(texts)
        self._ask_kinds(set().union(*ids_R))
        for row, text, ids in zip(rows, texts, ids_R, strict=True):
            before, *rests = bytes(map(self.kinds.__getitem__, ids)).split(BEGINS)
            if before or len(rests) != len(row) or self._holds_added(text, ids):
                left += row
                continue
            flat, end = to_bytes(ids), 0
            for span, rest in zip(row, rests, strict=True):
                begin, end = end, end + 4 + 4 * len(rest)
                ids_of[span] = flat[begin + num_own : end]
        return left

    def _ask_kinds(self, ids: set[int]) -> None:
        """Note for each of these ids whether it BEGINS a span or GOES_ON."""
        kinds, last = self.kinds, max(ids, default=0)
        if last >= len(kinds):  # a vocabulary with gaps between its ids
            self.kinds = kinds = kinds + bytes(last + 1 - len(kinds))
        for token in filterfalse(kinds.__getitem__, ids):
            is_first = self.mark and str(self.tokenizer.id_to_token(token)).startswith(self.mark)
            kinds[token] = ord(BEGINS if is_first else GOES_ON)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _holds_added(self, text: str, ids: list[int]) -> bool:
        """Tell whether a text with these ids holds an added token; a word may be unknown and have the id of one."""
        for token in (self.added[number] for number in self.added.keys() & ids):
            if token.content in text or (token.normalized and self.normalize(token.content) in self.normalize(text)):
                return True
        return False

    def _separator(self) -> tuple[str, int]:
        """Return a plain character that is one token of its own, and its id; an empty one if there is none."""
        for character in SEPARATORS:
            token = self.tokenizer.token_to_id(character)
            if token is not None and self.plain.shown.get(character) == character:
                return character, token
        return "", 0


def to_bytes(ids: list[int]) -> bytes:
    """Return ids as they lie in memory, as int32."""
    return array("i", ids).tobytes()


def without_surrogates(text: str) -> str:
    """Put U+FFFD in place of lone surrogates, which `tokenizers` refuses."""
    return text if text.isascii() else LONE_SURROGATE.sub("\ufffd", text)
