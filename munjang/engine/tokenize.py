"""Step 1, tokenize: the texts, pairs or token ids of one call, a window of them at a time.

B units of a window.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from munjang.engine.ahead import ahead
from munjang.errors import CheckpointError, InputError
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


class Units(Protocol):
    """The texts, pairs or token ids of one call."""

    @property
    def window(self) -> int:
        """The number of units tokenized together."""

    is_cut: Bools  # which units were too long, as far as they are tokenized

    def __len__(self) -> int: ...

    def tokenize(self, start: int) -> Window:
        """Tokenize the window that begins at `start`; in any thread."""


@dataclass
class Texts:
    """Single texts, each with the prompt in front of it."""

    texts: list[str]
    tokenizer: Tokenizer
    vocab_size: int
    prompt: str = ""
    long: str = "truncate"
    includes_prompt: bool = True  # in the pooling
    is_cut: Bools = field(init=False)
    window: ClassVar[int] = 4096  # enough for even batches, few enough to start soon

    def __post_init__(self) -> None:
        self.is_cut = np.zeros(len(self.texts), bool)
        self.prompt_tokens = self.tokenizer.prompt_length(self.prompt) if self.prompt else 0

    def __len__(self) -> int:
        return len(self.texts)

    def tokenize(self, start: int) -> Window:
        """Tokenize a window; with long="average" a text may have several sequences for its row."""
        texts, tokenizer = self.texts[start : start + self.window], self.tokenizer
        prompted = [self.prompt + text for text in texts] if self.prompt else texts
        if self.long == "average":
            num_repeated = self.prompt_tokens - len(tokenizer.single.parts[0][0]) if self.prompt else 0
            tokens, text_of = tokenizer.windows(prompted, num_repeated)
        else:
            tokens, text_of = tokenizer(prompted), np.arange(len(texts))
        if self.long == "error" and tokens.cut_rows.any():
            first = texts[int(np.flatnonzero(tokens.cut_rows)[0])]
            raise InputError(
                f"{int(tokens.cut_rows.sum())} texts are longer than {tokenizer.max_length} tokens, "
                f"the first being {first!r:.60}."
            )
        _check_ids(tokens.ids, self.vocab_size)
        if self.long == "truncate":
            self.is_cut[start : start + len(texts)] = tokens.cut_rows
        num_skipped = 0 if self.includes_prompt else self.prompt_tokens
        return Window(start + text_of, tokens, np.full(len(tokens.lengths), num_skipped) if num_skipped else None)


class Pairs:
    """Pairs of texts; every distinct text is tokenized once."""

    window: ClassVar[int] = 8192

    def __init__(self, pairs: list[tuple[str, str]], tokenizer: Tokenizer, vocab_size: int, num_threads: int) -> None:
        self.tokenizer = tokenizer
        self.is_cut = np.zeros(len(pairs), bool)
        text_rows: dict[str, int] = {}
        for pair in pairs:
            for text in pair:
                text_rows.setdefault(text, len(text_rows))
        self.text_rows = np.array([[text_rows[a], text_rows[b]] for a, b in pairs], np.int64).reshape(-1, 2)
        texts = list(text_rows)
        jobs = [partial(tokenizer.bodies, texts[at : at + self.window]) for at in range(0, len(texts), self.window)]
        bodies = list(ahead(jobs, num_threads if len(jobs) > 1 else 0)) or [tokenizer.bodies([])]
        self.ids: Ids = np.concatenate([ids for ids, _ in bodies])
        self.lengths: Ints = np.concatenate([lengths for _, lengths in bodies])
        self.starts = cumulative(self.lengths)
        _check_ids(self.ids, vocab_size)

    def __len__(self) -> int:
        return len(self.text_rows)

    def tokenize(self, start: int) -> Window:
        """Join the two texts of each pair of a window."""
        a, b = self.text_rows[start : start + self.window].T
        lengths_a, lengths_b = self.lengths[a], self.lengths[b]
        first, second = (gather(self.ids, self.starts, side, self.lengths[side]) for side in (a, b))
        tokens = self.tokenizer.join(first, lengths_a, second, lengths_b)
        self.is_cut[start : start + self.window] = tokens.cut_rows
        return Window(np.arange(start, start + len(a)), tokens)


class ReadyIds:
    """Token ids from the caller, in one window."""

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
        self.window, self.is_cut = max(len(lengths), 1), np.zeros(len(lengths), bool)

    def __len__(self) -> int:
        return len(self.tokens.lengths)

    def tokenize(self, start: int) -> Window:
        """Return all token ids as one window."""
        return Window(np.arange(len(self)), self.tokens)


def _check_ids(ids: Ids, vocab_size: int) -> None:
    """Refuse ids outside the embedding table: on a GPU they would end the whole process."""
    if len(ids) and int(ids.max()) >= vocab_size:
        raise CheckpointError(
            f"The tokenizer gives the id {int(ids.max())}, but the model has {vocab_size} embeddings; they are not of "
            "one model, or a token was added without a row for it."
        )
