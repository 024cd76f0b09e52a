"""Embedder: a bi-encoder as the batcher needs it, texts to payload to vectors.    B texts, D dimensions."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from munjang.bi_encoder import DOCUMENT_PROMPTS, BiEncoder
from munjang.errors import InputError, unknown
from munjang.server.errors import Refused
from munjang.server.model_queue import Payload, Slice
from munjang.server.steps import Steps, pieces
from munjang.text.inputs import pick_prompt
from munjang.text.tokenizer import Tokenizer
from munjang.text.trim import trimmed
from munjang.types import Floats, TokenIds

ROLES = {"query": ("query",), "document": DOCUMENT_PROMPTS, "passage": DOCUMENT_PROMPTS}
MIN_KEPT_IDS = 0.8  # of a row of token ids, after decoding and tokenizing again; see num_kept_ids
Inputs = Sequence[str] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Embedding:
    """The vectors that a request asks for."""

    prompt_name: str | None = None
    role: str | None = None  # query or document: the model's own prompt for it
    normalize: bool | None = None  # None: as the model does it
    dimensions: int | None = None
    truncate: bool = True  # False: a text that is too long is an error
    keeps_end: bool = False  # of a text that is too long
    max_tokens: int | None = None  # of each text, besides what the model reads
    per_token: bool = False  # a vector for each token, not for each text


class Embedder:
    """A bi-encoder under its name here."""

    def __init__(self, name: str, model: BiEncoder, dimensions: Sequence[int] | None = None) -> None:
        self.name, self.model = name, model
        self.dimensions = declared(model) if dimensions is None else tuple(sorted(dimensions))
        for size in self.dimensions:
            if not 1 <= size <= model.dimension:
                raise InputError(f"{name} has vectors of {model.dimension} dimensions; they can't be cut to {size}.")

    @property
    def max_length(self) -> int | None:
        """Return the tokens that the model reads; None: any number."""
        return self.model.max_length

    @property
    def num_at_once(self) -> int:
        """Return how many batches are best computed side by side: one a core."""
        return self.model._engine.executor.num_workers

    def prepare(self, inputs: Inputs, asked: Embedding) -> Steps[Payload]:
        """Tokenize texts; or take token ids of this model, with or without its special tokens."""
        self._check_dimensions(asked.dimensions)
        is_raw, per_token = asked.normalize is False, asked.per_token
        if inputs and not isinstance(inputs[0], str):
            rows, cut = yield from self._with_special(inputs, asked)  # type: ignore[arg-type]
            return Payload(rows, [len(row) for row in rows], ("", is_raw, per_token), cut)
        prompt, texts = self.prompt(asked), [str(text) for text in inputs]
        rows, lengths, cut = yield from self._tokenized(texts, prompt)
        if cut and not asked.truncate:
            raise self._too_long(cut[0])
        if asked.max_tokens is not None or (cut and asked.keeps_end):
            texts, cut = yield from self._trimmed(texts, prompt, asked)
            rows, lengths, _ = yield from self._tokenized(texts, prompt)
        if prompt and not self.model.network.includes_prompt:  # the network has to know where the prompt ends
            return Payload(texts, lengths, (prompt, is_raw, per_token), cut)
        return Payload(rows, lengths, ("", is_raw, per_token), cut)

    def _tokenized(self, texts: Sequence[str], prompt: str) -> Steps[tuple[list[Any], list[int], list[int]]]:
        """Return the ids of each text, how many these are, and which texts were cut."""
        rows, lengths, cut = list[Any](), list[int](), list[int]()
        for part in pieces(texts):
            tokens = self.model.tokenizer([prompt + text for text in texts[part]])
            rows += np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
            lengths += tokens.lengths.tolist()
            cut += (np.flatnonzero(tokens.cut_rows) + part.start).tolist()
            yield
        return rows, lengths, cut

    def prompt(self, asked: Embedding) -> str:
        """Return what goes before every text."""
        if asked.role is not None and asked.prompt_name is None:
            if asked.role not in ROLES:
                raise unknown("input_type", asked.role, ROLES)
            return next((self.model.prompts[name] for name in ROLES[asked.role] if self.model.prompts.get(name)), "")
        return pick_prompt(None, asked.prompt_name, self.model.prompts, self.model.default_prompt_name)

    def compute(self, batch: Sequence[Slice]) -> list[Sequence[Any]]:
        """Compute full vectors of a batch; those of equal settings together."""
        groups: dict[Any, list[int]] = {}
        for row, part in enumerate(batch):
            is_ids = not isinstance(part.units[0], str)
            groups.setdefault((part.settings, is_ids), []).append(row)
        results: list[Sequence[Any]] = [[]] * len(batch)
        for ((prompt, is_raw, per_token), is_ids), rows in groups.items():
            units = [unit for row in rows for unit in batch[row].units]
            vectors_BD = self.model.encode(
                TokenIds(units) if is_ids else units,
                prompt=None if is_ids else prompt,
                normalize=False if is_raw else None,
                truncate_dim=None if per_token else self.model.width,
                output="tokens" if per_token else "numpy",
                progress=False,
            )
            start = 0
            for row in rows:
                end = start + len(batch[row].units)
                results[row] = list(vectors_BD[start:end])
                start = end
        return results

    def finish(self, rows: Sequence[Floats], asked: Embedding) -> Floats:
        """Cut and normalize full vectors as a request asks for."""
        model = self.model
        full_BD = np.stack(rows) if rows else np.zeros((0, model.width), np.float32)
        self.check_finite(full_BD)
        size = asked.dimensions or model.truncate_dim
        vectors_BD = full_BD if size is None else full_BD[:, :size]
        # OpenAI's shorter vectors have unit length; so do ours where the model's have
        is_unit = asked.normalize or (asked.dimensions and asked.normalize is None and model.network.is_unit)
        if not is_unit:
            return np.ascontiguousarray(vectors_BD)
        lengths_B1 = np.linalg.norm(vectors_BD, axis=1, keepdims=True)
        unit_BD: Floats = vectors_BD / np.maximum(lengths_B1, 1e-12)
        return unit_BD

    def check_finite(self, vectors: Floats) -> None:
        """Refuse what JSON has no numbers for."""
        if not np.isfinite(vectors).all():
            raise Refused("model", f"{self.name} gave vectors that are not finite; its weights may be damaged.")

    def _trimmed(self, texts: Sequence[str], prompt: str, asked: Embedding) -> Steps[tuple[list[str], list[int]]]:
        """Cut texts to what is asked for and what fits behind the prompt; return them and which were cut."""
        tokenizer = self.model.tokenizer
        room = tokenizer.room(tokenizer.single)
        if room is not None:
            room -= int(tokenizer.bodies([prompt])[1][0])
        limit = min(size for size in (room, asked.max_tokens) if size is not None)
        kept = []
        for text in texts:
            kept.append(trimmed(tokenizer, text, limit, asked.keeps_end))
            yield
        cut = [row for row, text in enumerate(kept) if text != texts[row]]
        if cut and not asked.truncate:
            raise Refused("too_large", f"Text {cut[0]} has more than {limit} tokens.")
        return kept, cut

    def _too_long(self, row: int) -> Refused:
        message = f"Text {row} has more tokens than the {self.model.max_length} that {self.name} reads."
        return Refused("too_large", message)

    def _with_special(self, rows: Sequence[Sequence[int]], asked: Embedding) -> Steps[tuple[list[Any], list[int]]]:
        tokenizer, vocab_size = self.model.tokenizer, self.model.tokenizer.vocab_size
        before, behind = (ids.tolist() for ids, _ in tokenizer.single.parts)
        limit = self.model.max_length
        num_special = len(before) + len(behind)
        if asked.max_tokens is not None:
            limit = min(asked.max_tokens + num_special, limit or asked.max_tokens + num_special)
        whole, cut = [], list[int]()
        for number, row in enumerate(rows):
            ids = list(row)
            if not ids or not all(0 <= token < vocab_size for token in ids):
                raise InputError(
                    f"Text {number} should be token ids of {self.name}: 0 to {vocab_size - 1}, at least one."
                )
            has_special = ids[: len(before)] == before and ids[len(ids) - len(behind) :] == behind
            body = ids[len(before) : len(ids) - len(behind)] if has_special else ids
            if num_kept_ids(tokenizer, body) < MIN_KEPT_IDS * len(body):
                raise InputError(
                    f"Text {number} should be token ids of {self.name}; its tokenizer would never give these. "
                    "Send texts, or tokenize with this model's tokenizer (POST /tokenize)."
                )
            if limit is not None and len(body) + num_special > limit:
                if not asked.truncate:
                    raise self._too_long(number)
                room = max(limit - num_special, 0)
                body = body[len(body) - room :] if asked.keeps_end else body[:room]
                cut.append(number)
            whole.append(np.array([*before, *body, *behind], np.int32))
            yield
        return whole, cut

    def _check_dimensions(self, asked: int | None) -> None:
        if asked is None or asked == self.model.dimension or asked in self.dimensions:
            return
        sizes = ", ".join(map(str, self.dimensions))
        hint = f"choose from {sizes}" if sizes else "leave dimensions out"
        raise Refused("invalid", f"{self.name} has no vectors of {asked} dimensions; {hint}.", param="dimensions")


def num_kept_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> int:
    """Count the ids that are still there after decoding and tokenizing again; foreign ones make words of pieces."""
    again = tokenizer.bodies([tokenizer.rust.decode(list(ids), skip_special_tokens=False)])[0]
    return (Counter(ids) & Counter(again.tolist())).total()


def declared(model: BiEncoder) -> tuple[int, ...]:
    """Read from config.json what the vectors may be cut to (`matryoshka_dimensions`); most models say nothing."""
    folder = model.model.folder
    path = None if folder is None else Path(folder) / "config.json"
    if path is None or not path.is_file():
        return ()
    sizes = json.loads(path.read_text(encoding="utf-8")).get("matryoshka_dimensions") or []
    return tuple(sorted(size for size in sizes if isinstance(size, int) and 1 <= size <= model.dimension))
