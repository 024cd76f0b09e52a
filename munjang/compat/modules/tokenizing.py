"""The tokenizer of a Transformer: ours for ids, transformers' for those who look at it.    B inputs, L the longest."""

import math
from typing import Any

import numpy as np
import torch

from munjang import checkpoint
from munjang.compat.gaps import MODULES, TOKENS, NotCovered
from munjang.errors import InputError, MissingExtra
from munjang.text.inputs import as_texts
from munjang.types import Ids


class Tokenizing:
    """The tokenizer of a model that is stored in a folder."""

    stored: checkpoint.Model
    is_scorer: bool

    def _begin_tokenizing(self) -> None:
        self._tokenizer: Any = None
        self._tokenizer_size = 0

    @property
    def tokenizer(self) -> Any:
        """Return transformers' tokenizer of the same folder (extra), for inspection.

        Setting its model_max_length sets `max_seq_length`; tokens added to it are refused at the next call.
        """
        if self._tokenizer is None:
            try:
                from transformers import AutoTokenizer
            except ImportError as error:
                raise MissingExtra("transformers", "transformers", "model.tokenizer") from error
            self._tokenizer = AutoTokenizer.from_pretrained(self.stored.folder, local_files_only=True)
            self._tokenizer.model_max_length = self.stored.tokenizer.max_length
            self._tokenizer_size = len(self._tokenizer)
        self.follow_tokenizer()
        return self._tokenizer

    @tokenizer.setter
    def tokenizer(self, value: object) -> None:
        raise NotCovered(f"munjang.compat does not cover setting the tokenizer. {MODULES}")

    @property
    def processor(self) -> Any:
        """Return `tokenizer`, by its newer name."""
        return self.tokenizer

    def follow_tokenizer(self) -> None:
        """Take over what was set on `tokenizer`, or refuse it."""
        if self._tokenizer is None:
            return
        if len(self._tokenizer) != self._tokenizer_size:
            added = len(self._tokenizer) - self._tokenizer_size
            raise NotCovered(f"munjang.compat does not cover adding tokens ({added:+} in model.tokenizer). {TOKENS}")
        if self._tokenizer.model_max_length != self.stored.tokenizer.max_length:
            self.set_length(self._tokenizer.model_max_length)

    def set_length(self, tokens: int | None) -> None:
        """Set the maximum number of tokens, and say so to the tokenizer for inspection."""
        tokens = None if tokens == math.inf else tokens
        own = self.stored.tokenizer
        layout = own.pair if self.is_scorer else own.single
        checkpoint.check_length(self.stored, tokens, layout.num_special)
        own.max_length = tokens
        if self._tokenizer is not None:
            self._tokenizer.model_max_length = tokens

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return token ids and masks padded to the longest, [B, L]. encode and predict don't pad."""
        kwargs.pop("task", None)
        if kwargs:
            hint = " Set model.max_seq_length instead." if "processing_kwargs" in kwargs else ""
            raise InputError(f"preprocess does not take {', '.join(kwargs)}.{hint}")
        self.follow_tokenizer()
        if not len(inputs):
            return {}
        own = self.stored.tokenizer
        tokens = _tokens(own, inputs, prompt or "")
        longest = int(tokens.lengths.max())
        is_token = np.arange(longest) < tokens.lengths[:, None]
        if self.stored.tokenizer_config.get("padding_side") == "left":
            is_token = is_token[:, ::-1]
        features: dict[str, Any] = {"input_ids": _rectangle(tokens.ids, is_token, self._pad_id)}
        if own.has_types:
            types = np.zeros_like(tokens.ids) if tokens.types is None else tokens.types
            features["token_type_ids"] = _rectangle(types, is_token, 0)
        features |= {"attention_mask": torch.from_numpy(is_token.astype(np.int64)), "modality": "text"}
        return {**features, "prompt_length": own.prompt_length(prompt)} if prompt else features

    @property
    def _pad_id(self) -> int:
        token = self.stored.tokenizer_config.get("pad_token")
        spelled = str(token.get("content") if isinstance(token, dict) else token)
        pad_id = self.stored.tokenizer.rust.token_to_id(spelled)
        return int(self.stored.config.get("pad_token_id") or 0) if pad_id is None else pad_id


def _tokens(tokenizer: Any, inputs: Any, prompt: str) -> Any:
    """Tokenize texts, or pairs of texts; the prompt stands before the first of a pair."""
    first = next(iter(inputs))
    if isinstance(first, (list, tuple)) and not isinstance(first, str):
        rows = [tuple(row) for row in inputs]
        if any(len(row) != 2 for row in rows):
            raise InputError(f"A pair has two texts; this one has {len(next(row for row in rows if len(row) != 2))}.")
        return tokenizer.pairs([prompt + a for a, _ in rows], [b for _, b in rows])
    return tokenizer([prompt + text for text in as_texts(inputs)])


def _rectangle(flat: Ids, is_token: Any, fill: int) -> torch.Tensor:
    rows = np.full(is_token.shape, fill, np.int64)
    rows[is_token] = flat
    return torch.from_numpy(rows)
