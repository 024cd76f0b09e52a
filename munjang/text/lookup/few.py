"""A few texts at once: their spans from a dictionary, as numpy's calls would take most of the time.

A known sentence takes 2 µs this way and 90 by the table; from about 12,000 characters on the table is faster. Spans are
cut at every space; a text in which one is empty or has an unsafe end goes whole. The dictionary is bounded: when it is
full it starts again from nothing. Threads need no lock: an entry never changes, and none is taken out of a dictionary
that a call holds.
"""

from collections.abc import Sequence
from itertools import chain, filterfalse

from munjang.text.lookup.spans import MAX_SPAN_CHARACTERS
from munjang.text.lookup.unknown import LONE_SURROGATE, SpanTokenizer

MAX_SPANS = 1 << 16  # about 15 MB with their ids
MAX_ID_BYTES = 1 << 24  # a dictionary of hostile spans is full sooner
MIN_KNOWN_SPANS = 20  # known spans of a call that save as much time as learning the others takes
CALLS_PER_LEARNED = 32  # of calls with fewer known ones, one is learned from: it takes longer, and serves the next
CUT = "\0"  # put in front of each space where spans keep it


class FewTexts:
    """Puts the ids of a few texts together from those of their spans."""

    def __init__(self, tokenize: SpanTokenizer) -> None:
        self.tokenize = tokenize
        self.known: dict[str, bytes] = {}
        self.num_bytes = self.num_misses = 0

    def __call__(self, texts: Sequence[str]) -> list[bytes]:
        """Return the ids of each text, without special tokens, as bytes of int32."""
        known, spans_B = self.known, [self._cut(text) for text in texts]
        try:
            return [b"".join([known[span] for span in spans]) for spans in spans_B]
        except KeyError:
            self.num_misses += 1
        is_turn, num_spans = self.num_misses % CALLS_PER_LEARNED == 0, sum(map(len, spans_B))
        if num_spans < MIN_KNOWN_SPANS and not is_turn:
            return list(map(self.tokenize.whole, texts))
        missing = list(dict.fromkeys(filterfalse(known.__contains__, chain.from_iterable(spans_B))))
        if num_spans - len(missing) < MIN_KNOWN_SPANS + len(missing) / 2 and not is_turn:
            return list(map(self.tokenize.whole, texts))
        if len(known) + len(missing) > MAX_SPANS or self.num_bytes > MAX_ID_BYTES:
            self.known, self.num_bytes = (known := {}), 0
            missing = list(dict.fromkeys(chain.from_iterable(spans_B)))
        self._learn(known, missing)
        return [
            b"".join([known[span] for span in spans])
            if all(map(known.__contains__, spans))
            else self.tokenize.whole(text)
            for spans, text in zip(spans_B, texts, strict=True)
        ]

    def _cut(self, text: str) -> list[str]:
        if not self.tokenize.keeps_space:
            return text.split(" ")
        return text.replace(" ", CUT + " ").split(CUT) if CUT not in text else [""]

    def _learn(self, known: dict[str, bytes], spans: list[str]) -> None:
        """Tokenize and keep those of the spans that can be kept."""
        if not self.tokenize.plain.are_all_plain(spans):
            spans = list(filter(self._can_be_kept, spans))
        ids_of = self.tokenize(spans)
        known.update(ids_of)
        self.num_bytes += sum(map(len, ids_of.values()))

    def _can_be_kept(self, span: str) -> bool:
        return (
            len(span) <= MAX_SPAN_CHARACTERS
            and self.tokenize.has_safe_ends(span)
            and (span.isascii() or LONE_SURROGATE.search(span) is None)
        )
