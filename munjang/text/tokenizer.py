"""Tokenizer: texts to flat ids and lengths, the same ids as the `tokenizers` library.

Known structures go by the look-up (text/lookup/), everything else straight through `tokenizers`. Special tokens
and truncation are added here, so nothing is set on the shared `tokenizers` object after loading and any number of
threads may use it.
"""

import threading
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as RustTokenizer

from munjang.errors import CheckpointError, InputError
from munjang.text.build import build
from munjang.text.flat import cumulative
from munjang.text.lookup.device import DeviceLookup
from munjang.text.lookup.lookup import SpanLookup, body_tokenizer, from_bytes
from munjang.text.packing import has_triton
from munjang.types import Ids, Ints

PROBES = ("a", "가", "1", "the", "!", "中")


@dataclass(frozen=True)
class Tokens:
    """Texts as one flat row of ids; `lengths` says how many each has."""

    ids: Ids
    lengths: Ints
    types: Ids | None = None  # segment of each token, for pairs that have them
    cut_rows: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))  # which texts were too long


@dataclass(frozen=True)
class Template:
    """Special tokens around one text or between two, read off the tokenizer by probing it."""

    parts: tuple[tuple[Ids, Ids], ...]  # ids and types before, between and behind the texts
    types: tuple[int, ...]  # segment of each text

    @property
    def num_special(self) -> int:
        return sum(len(ids) for ids, _ in self.parts)

    @property
    def max_id(self) -> int:
        return max((int(ids.max(initial=0)) for ids, _ in self.parts), default=0)


class Tokenizer:
    """Turns texts and pairs into ids, as the tokenizer of one model folder does."""

    def __init__(self, rust: RustTokenizer, max_length: int | None = None, has_special: bool = True) -> None:
        rust.no_padding()
        rust.no_truncation()
        self.rust = rust
        self.max_length = max_length  # special tokens included; None: no limit
        self.dropped: int | None = None  # an id that is left out of every text (model2vec's unknown piece)
        self.has_types = True  # whether pairs carry segment ids
        self.tokenize_bodies = body_tokenizer(rust)
        self.on_devices: dict[torch.device, DeviceLookup] = {}
        self._lock = threading.Lock()
        empty = np.zeros(0, np.int32)
        bare = Template(((empty, empty), (empty, empty)), (0,))
        self.has_special = has_special
        self.single = self._probe(1) if has_special else bare
        self.around = [ids.tobytes() for ids, _ in self.single.parts]
        self.pair = self._probe(2) if has_special else Template(((empty, empty),) * 3, (0, 0))

    def __copy__(self) -> "Tokenizer":
        """Return a second one with limits of its own, over the same tables."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Keep what the rest is built from: locks and tables stay here."""
        names = ("max_length", "has_special", "dropped", "has_types")
        return {"rust": self.rust.to_str(), **{name: getattr(self, name) for name in names}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Tokenizer.__init__(self, RustTokenizer.from_str(state["rust"]), state["max_length"], state["has_special"])
        self.dropped, self.has_types = state["dropped"], state["has_types"]

    @classmethod
    def load(
        cls, folder: Path, settings: Mapping[str, Any], max_length: int | None = None, has_special: bool = True
    ) -> "Tokenizer":
        """Build the tokenizer from the files of a model folder."""
        return cls(build(folder, settings), max_length, has_special)

    def limited(self, max_length: int | None) -> "Tokenizer":
        """Return this tokenizer with another limit; they share everything else."""
        if max_length == self.max_length:
            return self
        other = copy(self)
        other.max_length = max_length
        return other

    @property
    def vocab_size(self) -> int:
        """Return one more than the largest id."""
        return max(self.rust.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @property
    def path(self) -> str:
        """Say which way texts take: `look-up (wordpiece)` or `tokenizers`."""
        tokenize = self.tokenize_bodies
        return f"look-up ({tokenize.structure.name})" if isinstance(tokenize, SpanLookup) else "tokenizers"

    def on(self, device: torch.device) -> DeviceLookup | None:
        """Return the look-up on a device; None: there is none for this tokenizer."""
        if not isinstance(self.tokenize_bodies, SpanLookup) or self.dropped is not None or not has_triton():
            return None
        with self._lock:
            if device not in self.on_devices:
                self.on_devices[device] = DeviceLookup(self.tokenize_bodies, device)
            return self.on_devices[device]

    def bodies(self, texts: Sequence[str]) -> tuple[Ids, Ints]:
        """Return flat ids without special tokens, and how many each text has."""
        flat, lengths = self.tokenize_bodies(texts)
        if self.dropped is None:
            return flat, lengths
        kept = flat != self.dropped
        text_of = np.repeat(np.arange(len(lengths)), lengths)
        return flat[kept], np.bincount(text_of[kept], minlength=len(lengths)).astype(np.int64)

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Return the ids of single texts with their special tokens, cut to `max_length`."""
        parts = self.tokenize_bodies.few(texts) if self.dropped is None else None
        return self.finish(*self.bodies(texts)) if parts is None else self._surround(parts)

    def _surround(self, parts: list[bytes]) -> Tokens:
        """Finish a few texts without numpy, whose calls would take most of the time."""
        before, behind = self.around
        num_special, sizes = (len(before) + len(behind)) // 4, [len(part) // 4 for part in parts]
        is_cut = np.zeros(len(parts), bool)
        if self.max_length is not None and max(sizes) > (room := max(self.max_length - num_special, 0)):
            is_cut = np.array(sizes) > room
            parts, sizes = [part[: 4 * room] for part in parts], [min(size, room) for size in sizes]
        ids = from_bytes(bytearray().join([before, (behind + before).join(parts), behind]))
        return Tokens(ids, np.array([size + num_special for size in sizes]), None, is_cut)

    def finish(self, flat: Ids, lengths: Ints) -> Tokens:
        """Put special tokens around bodies and cut them to `max_length`."""
        room = self.room(self.single)
        kept = lengths if room is None else np.minimum(lengths, room)
        if len(lengths) == 1:  # the time of a lone text is that of numpy's calls
            (before, _), (behind, _) = self.single.parts
            ids = np.concatenate([before, flat[: int(kept[0])], behind])
        else:
            ids, _ = _assemble(self.single, [(flat, lengths, kept)])
        return Tokens(ids, kept + self.single.num_special, None, kept < lengths)

    def pairs(self, first: Sequence[str], second: Sequence[str]) -> Tokens:
        """Return the ids of pairs; the longer side of a pair is cut first until both fit."""
        flat_a, lengths_a = self.bodies(first)
        flat_b, lengths_b = self.bodies(second)
        return self.join(flat_a, lengths_a, flat_b, lengths_b)

    def join(self, flat_a: Ids, lengths_a: Ints, flat_b: Ids, lengths_b: Ints) -> Tokens:
        """Make pairs of bodies, with special tokens, cut to `max_length`."""
        room = self.room(self.pair)
        kept_a, kept_b = (lengths_a, lengths_b) if room is None else longest_first(lengths_a, lengths_b, room)
        ids, types = _assemble(self.pair, [(flat_a, lengths_a, kept_a), (flat_b, lengths_b, kept_b)])
        cut_rows = (kept_a < lengths_a) | (kept_b < lengths_b)
        return Tokens(
            ids, kept_a + kept_b + self.pair.num_special, types if self.has_types and types.any() else None, cut_rows
        )

    def windows(self, texts: Sequence[str], head: int = 0) -> tuple[Tokens, Ints]:
        """Cut texts into as many windows as their lengths ask for; return those, and the text that each is of.

        The first `head` tokens of a text, its prompt, are repeated at the start of every window.
        """
        flat, lengths = self.bodies(texts)
        room = self.room(self.single)
        if room is None:
            return self(texts), np.arange(len(texts))
        if head >= room:
            raise InputError(f"The prompt takes {head} tokens and leaves no room for text within {self.max_length}.")
        rest = np.maximum(lengths - head, 0)
        pieces = np.maximum(-(-rest // (room - head)), 1)
        text_of = np.repeat(np.arange(len(texts)), pieces)
        place = np.arange(len(text_of)) - np.repeat(cumulative(pieces)[:-1], pieces)
        sizes = np.minimum(rest[text_of] - place * (room - head), room - head)
        heads = np.minimum(lengths, head)[text_of]
        starts = cumulative(lengths)[:-1][text_of]
        within = np.arange(int((heads + sizes).sum())) - np.repeat(cumulative(heads + sizes)[:-1], heads + sizes)
        jump = np.where(within < np.repeat(heads, heads + sizes), 0, np.repeat(place * (room - head), heads + sizes))
        body = flat[np.repeat(starts, heads + sizes) + within + jump]
        ids, _ = _assemble(self.single, [(body, heads + sizes, heads + sizes)])
        return Tokens(ids, heads + sizes + self.single.num_special, None, pieces > 1), text_of

    def room(self, template: Template) -> int | None:
        """Return how many tokens of text fit beside the special ones; None: any number."""
        return None if self.max_length is None else max(self.max_length - template.num_special, 0)

    def prompt_length(self, prompt: str) -> int:
        """Return how many leading tokens a prompt takes up, the first special ones included."""
        return len(self.single.parts[0][0]) + int(self.bodies([prompt])[1][0])

    def save(self, folder: Path, is_indented: bool = True) -> None:
        """Write tokenizer.json; without indentation it takes half the bytes."""
        self.rust.save(str(folder / "tokenizer.json"), is_indented)

    def _probe(self, texts: int) -> Template:
        for probe in PROBES:
            try:
                found = self.rust.encode(probe, probe if texts == 2 else None)
            except Exception:  # a bare one: the word is unknown, and the vocabulary has no token for that
                continue
            if set(found.sequence_ids) >= set(range(texts)):
                return _template(found, texts)
        raise CheckpointError(
            f"This tokenizer gives no tokens for any of {', '.join(PROBES)}; its tokenizer.json is damaged."
        )


def _template(found: Encoding, texts: int) -> Template:
    owner = [-1 if text is None else text for text in found.sequence_ids]
    ids, types = np.array(found.ids, np.int32), np.array(found.type_ids, np.int32)
    places = [(owner.index(text), len(owner) - owner[::-1].index(text)) for text in range(texts)]
    edges = [0, *(edge for place in places for edge in place), len(owner)]
    if edges != sorted(edges) or any(owner[at] != text for text, place in enumerate(places) for at in range(*place)):
        raise CheckpointError(
            "This tokenizer's post_processor does not keep the two texts of a pair whole and in order."
        )
    parts = tuple((ids[a:b], types[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True))
    return Template(parts, tuple(int(types[start]) for start, _ in places))


def _assemble(template: Template, texts: list[tuple[Ids, Ints, Ints]]) -> tuple[Ids, Ids]:
    """Put special tokens and the kept head of each body together, text by text, as (ids, types)."""
    num_texts = len(texts[0][1])
    sizes = [len(ids) for ids, _ in template.parts]
    lengths = sum((kept for _, _, kept in texts), np.full(num_texts, sum(sizes), np.int64))
    at = cumulative(lengths)[:-1]
    out, types = np.empty(int(lengths.sum()), np.int32), np.zeros(int(lengths.sum()), np.int32)
    for part, (special, special_types) in enumerate(template.parts):
        for offset, (token, kind) in enumerate(zip(special, special_types, strict=True)):
            out[at + offset], types[at + offset] = token, kind
        at = at + sizes[part]
        if part < len(texts):
            flat, all_lengths, kept = texts[part]
            within = np.arange(int(kept.sum())) - np.repeat(cumulative(kept)[:-1], kept)
            target = np.repeat(at, kept) + within
            out[target] = flat[np.repeat(cumulative(all_lengths)[:-1], kept) + within]
            types[target] = template.types[part]
            at = at + kept
    return out, types


def longest_first(lengths_a: Ints, lengths_b: Ints, room: int) -> tuple[Ints, Ints]:
    """Take tokens from the longer side of pairs until both fit, as `tokenizers` does; return what each side keeps.

    >>> [side.tolist() for side in longest_first(np.array([9, 2]), np.array([4, 9]), 6)]
    [[3, 2], [3, 4]]
    """
    short, long = np.minimum(lengths_a, lengths_b), np.maximum(lengths_a, lengths_b)
    fits = short + long <= room
    small = np.where(fits, short, np.minimum(short, room // 2))
    large = np.where(fits, long, np.minimum(long, room - small))
    a_is_long = lengths_a > lengths_b
    return np.where(a_is_long, large, small), np.where(a_is_long, small, large)
