"""Calls of late interaction: texts to one vector per token that counts.

B texts, T tokens, D dimension.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from munjang.checkpoint.model import Expansion
from munjang.engine.distinct import Distinct
from munjang.engine.engine import Engine
from munjang.engine.place import Place, TokenRows
from munjang.engine.tokenize import Texts, Units, Window
from munjang.text.flat import cumulative
from munjang.text.packing import Packed
from munjang.text.tokenizer import Tokens


@dataclass(frozen=True)
class TokenEncoding:
    """The options of one call of `encode` for token vectors."""

    prompt: str = ""
    max_length: int | None = None
    expansion: Expansion | None = None
    dropped: tuple[int, ...] = ()  # tokens without a vector
    kept: tuple[int, ...] | None = None  # the only ones with a vector; None: all others
    batch_tokens: int | None = None
    name = "encoding"
    is_shared = False  # token vectors of other processes would have to be copied

    @property
    def window(self) -> int:
        return Texts.window

    def units(self, items: Distinct[str], engine: Engine) -> Units:
        tokenizer, vocab_size = engine.tokenizer.limited(self.max_length), engine.network.encoder.vocab_size
        if self.expansion is None:
            return Texts(items, tokenizer, vocab_size, self.prompt)
        units = ExpandedTexts(items, tokenizer, vocab_size, self.prompt)
        units.expansion = self.expansion
        return units

    def forward(self, network: Any) -> Callable[[Packed], Tensor]:
        forward: Callable[[Packed], Tensor] = network.forward  # not the network: a CUDA graph has a row per text
        return forward

    def finish(self, results: Tensor) -> Tensor:
        return results.float()

    def place(self, units: Units, engine: Engine) -> Place:
        return TokenRows(len(units), engine.network.num_outputs, self.dropped, self.kept)


class ExpandedTexts(Texts):
    """Queries, filled up with the token of an expansion."""

    expansion: Expansion

    def tokenize(self, start: int) -> Window:
        """Tokenize a window, then fill up what is shorter than the expansion."""
        window, expansion = super().tokenize(start), self.expansion
        ids, lengths = window.tokens.ids, window.tokens.lengths
        grown = np.maximum(lengths, expansion.length)
        all_ids = np.full(int(grown.sum()), expansion.token, ids.dtype)
        places = np.arange(len(ids)) - np.repeat(cumulative(lengths)[:-1], lengths)
        all_ids[np.repeat(cumulative(grown)[:-1], lengths) + places] = ids
        tokens = Tokens(all_ids, grown, None, window.tokens.cut_rows)
        return Window(window.rows_B, tokens, None, None if expansion.is_seen else lengths)
