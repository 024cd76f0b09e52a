"""Step 1, tokenize: the texts, pairs or token ids of one call, a window of them at a time.

B units of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from munjang.engine.ahead import ahead
from munjang.engine.distinct import Distinct
from munjang.errors import CheckpointError, InputError
from munjang.text.device import SortedRow
from munjang.text.flat import cumulative, gather
from munjang.text.tokenizer import Tokenizer, Tokens
from munjang.types import Bools, Ids, Ints, TokenIds


@dataclass(frozen=True)
class Window:
    """Tokenized units, and the rows of the call's result that they fill."""

    rows_B: Ints
    tokens: Tokens
    skip_B: Ints | None = None  # leading tokens that pooling leaves out
    seen_B: Ints | None = None  # leading tokens that are attended to; None: all


@dataclass(frozen=True)
class DeviceWindow:
    """Neighbouring units, tokenized and sorted on the device."""

    first_row: int  # of the call's result
    row: SortedRow
    num_skipped: int = 0  # leading tokens that pooling leaves out


class Units(Protocol):
    """The texts, pairs or token ids of one call."""

    is_cut: Bools  # which units were too long, as far as they are tokenized
    max_ahead: ClassVar[int]  # threads that tokenize the next windows

    def __len__(self) -> int:
        """Return how many there are; the most that there can be, as long as not all are tokenized."""

    @property
    def starts(self) -> Sequence[int]:
        """The units at which windows begin; those of a window are tokenized together."""

    def tokenize(self, start: int) -> Window | DeviceWindow:
        """Tokenize the window that begins at `start`; in any thread."""


@dataclass
class PromptedTexts:
    """Single texts, each with the prompt in front of it."""

    texts: Distinct[str]
    tokenizer: Tokenizer
    vocab_size: int
    prompt: str = ""
    long: str = "truncate"
    includes_prompt: bool = True  # in the pooling
    is_cut: Bools = field(init=False)

    def __post_init__(self) -> None:
        self.is_cut = np.zeros(len(self.texts), bool)
        self.prompt_tokens = self.tokenizer.prompt_length(self.prompt) if self.prompt else 0

    def __len__(self) -> int:
        return len(self.texts)

    def prompted(self, start: int, end: int) -> list[str]:
        """Return some of the texts with the prompt."""
        texts = self.texts.take(start, end)
        return [self.prompt + text for text in texts] if self.prompt else texts

    @property
    def num_skipped(self) -> int:
        """The number of leading tokens that pooling leaves out."""
        return 0 if self.includes_prompt else self.prompt_tokens

    def note_cut(self, start: int, cut_rows: Bools) -> None:
        """Keep which texts of a window were too long, or refuse them."""
        if self.long == "error" and cut_rows.any():
            row = start + int(np.flatnonzero(cut_rows)[0])
            [first] = self.texts.take(row, row + 1)
            raise InputError(
                f"{int(cut_rows.sum())} texts are longer than {self.tokenizer.max_length} tokens, "
                f"the first being {first!r:.60}."
            )
        if self.long == "truncate":
            self.is_cut[start : start + len(cut_rows)] = cut_rows


class Texts(PromptedTexts):
    """Single texts, tokenized on the host."""

    window: ClassVar[int] = 4096  # enough for even batches, few enough to start soon
    max_ahead: ClassVar[int] = 8

    def __post_init__(self) -> None:
        self.texts.take(0, len(self.texts))  # several threads take from them
        super().__post_init__()

    @property
    def starts(self) -> Sequence[int]:
        return range(0, len(self), self.window)

    def tokenize(self, start: int) -> Window:
        """Tokenize a window; with long="average" a text may have several sequences for its row."""
        texts, tokenizer = self.prompted(start, start + self.window), self.tokenizer
        if self.long == "average":
            num_repeated = self.prompt_tokens - len(tokenizer.single.parts[0][0]) if self.prompt else 0
            tokens, text_of = tokenizer.windows(texts, num_repeated)
        else:
            tokens, text_of = tokenizer(texts), np.arange(len(texts))
        check_ids(tokens.ids, self.vocab_size)
        if self.long != "average":
            self.note_cut(start, tokens.cut_rows)
        num_skipped = self.num_skipped
        return Window(start + text_of, tokens, np.full(len(tokens.lengths), num_skipped) if num_skipped else None)


class Pairs:
    """Pairs of texts; every distinct text is tokenized once."""

    window: ClassVar[int] = 8192
    max_ahead: ClassVar[int] = 8

    def __init__(self, pairs: list[tuple[str, str]], tokenizer: Tokenizer, vocab_size: int, num_threads: int) -> None:
        self.tokenizer = tokenizer
        self.is_cut = np.zeros(len(pairs), bool)
        texts, self.text_rows = number_texts(pairs)
        jobs = [partial(tokenizer.bodies, texts[at : at + self.window]) for at in range(0, len(texts), self.window)]
        bodies = list(ahead(jobs, num_threads if len(jobs) > 1 else 0)) or [tokenizer.bodies([])]
        self.ids: Ids = np.concatenate([ids for ids, _ in bodies])
        self.lengths: Ints = np.concatenate([lengths for _, lengths in bodies])
        self.text_starts = cumulative(self.lengths)
        check_ids(self.ids, vocab_size)

    def __len__(self) -> int:
        return len(self.text_rows)

    @property
    def starts(self) -> Sequence[int]:
        return range(0, len(self), self.window)

    def tokenize(self, start: int) -> Window:
        """Join the two texts of each pair of a window."""
        a, b = self.text_rows[start : start + self.window].T
        lengths_a, lengths_b = self.lengths[a], self.lengths[b]
        first, second = (gather(self.ids, self.text_starts, side, self.lengths[side]) for side in (a, b))
        tokens = self.tokenizer.join(first, lengths_a, second, lengths_b)
        self.is_cut[start : start + self.window] = tokens.cut_rows
        return Window(np.arange(start, start + len(a)), tokens)


class ReadyIds:
    """Token ids from the caller, in one window."""

    max_ahead: ClassVar[int] = 0

    def __init__(self, token_ids: TokenIds, vocab_size: int, max_length: int | None) -> None:
        self.tokens = Tokens(token_ids.flat, token_ids.lengths)
        ids, lengths = self.tokens.ids, self.tokens.lengths
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
            raise InputError(
                f"Token ids must lie between 0 and {vocab_size - 1}, the model's vocabulary; "
                f"found {int(ids.min())} to {int(ids.max())}."
            )
        if max_length is not None and (lengths > max_length).any():
            raise InputError(
                f"Text {int(np.argmax(lengths > max_length))} has {int(lengths.max())} token ids; "
                f"the model reads {max_length}."
            )
        self.is_cut = np.zeros(len(lengths), bool)

    def __len__(self) -> int:
        return len(self.tokens.lengths)

    @property
    def starts(self) -> Sequence[int]:
        return range(min(len(self), 1))

    def tokenize(self, start: int) -> Window:
        """Return all token ids as one window."""
        return Window(np.arange(len(self)), self.tokens)


def number_texts(pairs: list[tuple[str, str]]) -> tuple[list[str], Ints]:
    """Return the distinct texts of pairs, and the two of each pair among them [B, 2]."""
    texts = Distinct([text for pair in pairs for text in pair])
    rows = texts.rows()
    return texts.all(), (np.arange(len(texts)) if rows is None else rows).reshape(-1, 2)


def check_ids(ids: Ids, vocab_size: int) -> None:
    """Refuse ids outside the embedding table: on a GPU they would end the whole process."""
    if len(ids) and int(ids.max()) >= vocab_size:
        raise CheckpointError(
            f"The tokenizer gives the id {int(ids.max())}, but the model has {vocab_size} embeddings; they are not of "
            "one model, or a token was added without a row for it."
        )
