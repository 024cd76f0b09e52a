"""Embedder: a bi-encoder as the batcher needs it, texts to payload to vectors.    B texts, D dimensions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from munjang.bi_encoder import DOCUMENT_PROMPTS, BiEncoder
from munjang.errors import InputError, unknown
from munjang.server.errors import Refused
from munjang.server.model_queue import Payload, Slice
from munjang.text.inputs import pick_prompt
from munjang.types import Floats, TokenIds

ROLES = {"query": ("query",), "document": DOCUMENT_PROMPTS, "passage": DOCUMENT_PROMPTS}
Inputs = Sequence[str] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Embedding:
    """The vectors that a request asks for."""

    prompt_name: str | None = None
    role: str | None = None  # query or document: the model's own prompt for it
    normalize: bool | None = None  # None: as the model does it
    dimensions: int | None = None
    truncate: bool = True  # False: a text that is too long is an error


class Embedder:
    """A bi-encoder under its name here."""

    def __init__(self, name: str, model: BiEncoder, dimensions: Sequence[int] | None = None) -> None:
        self.name, self.model = name, model
        self.dimensions = declared(model) if dimensions is None else tuple(sorted(dimensions))
        for size in self.dimensions:
            if not 1 <= size <= model.dimension:
                raise InputError(f"{name} has vectors of {model.dimension} dimensions; they can't be cut to {size}.")

    @property
    def num_at_once(self) -> int:
        """Return how many batches are best computed side by side: one a core."""
        return self.model._engine.executor.num_workers

    def prepare(self, inputs: Inputs, asked: Embedding) -> Payload:
        """Tokenize texts; or take token ids of this model, with or without its special tokens."""
        self._check_dimensions(asked.dimensions)
        is_raw = asked.normalize is False
        if inputs and not isinstance(inputs[0], str):
            rows = self._with_special(inputs)  # type: ignore[arg-type]
            return Payload(rows, [len(row) for row in rows], ("", is_raw))
        prompt, texts = self.prompt(asked), [str(text) for text in inputs]
        tokens = self.model.tokenizer([prompt + text for text in texts])
        if not asked.truncate and tokens.cut_rows.any():
            row = int(np.argmax(tokens.cut_rows))
            raise Refused(
                "too_large", f"Text {row} has more tokens than the {self.model.max_length} that {self.name} reads."
            )
        lengths = tokens.lengths.tolist()
        if prompt and not self.model.network.includes_prompt:  # the network has to know where the prompt ends
            return Payload(texts, lengths, (prompt, is_raw))
        return Payload(np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1]) if texts else [], lengths, ("", is_raw))

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
        for ((prompt, is_raw), is_ids), rows in groups.items():
            units = [unit for row in rows for unit in batch[row].units]
            vectors_BD = self.model.encode(
                TokenIds(units) if is_ids else units,
                prompt=None if is_ids else prompt,
                normalize=False if is_raw else None,
                truncate_dim=self.model.width,
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
        if not np.isfinite(full_BD).all():  # JSON has no such numbers
            raise Refused("model", f"{self.name} gave vectors that are not finite; its weights may be damaged.")
        size = asked.dimensions or model.truncate_dim
        vectors_BD = full_BD if size is None else full_BD[:, :size]
        # OpenAI's shorter vectors have unit length; so do ours where the model's have
        is_unit = asked.normalize or (asked.dimensions and asked.normalize is None and model.network.is_unit)
        if not is_unit:
            return np.ascontiguousarray(vectors_BD)
        lengths_B1 = np.linalg.norm(vectors_BD, axis=1, keepdims=True)
        unit_BD: Floats = vectors_BD / np.maximum(lengths_B1, 1e-12)
        return unit_BD

    def _with_special(self, rows: Sequence[Sequence[int]]) -> list[Any]:
        tokenizer, vocab_size = self.model.tokenizer, self.model.tokenizer.vocab_size
        before, behind = (ids.tolist() for ids, _ in tokenizer.single.parts)
        limit = self.model.max_length
        whole = []
        for number, row in enumerate(rows):
            ids = list(row)
            if not ids or not all(0 <= token < vocab_size for token in ids):
                raise InputError(
                    f"Text {number} should be token ids of {self.name}: 0 to {vocab_size - 1}, at least one."
                )
            has_special = ids[: len(before)] == before and ids[len(ids) - len(behind) :] == behind
            ids = ids if has_special else [*before, *ids, *behind]
            if limit is not None and len(ids) > limit:
                ids = [*ids[: limit - len(behind)], *behind]
            whole.append(np.array(ids, np.int32))
        return whole

    def _check_dimensions(self, asked: int | None) -> None:
        if asked is None or asked == self.model.dimension or asked in self.dimensions:
            return
        sizes = ", ".join(map(str, self.dimensions))
        hint = f"choose from {sizes}" if sizes else "leave dimensions out"
        raise Refused("invalid", f"{self.name} has no vectors of {asked} dimensions; {hint}.", param="dimensions")


def declared(model: BiEncoder) -> tuple[int, ...]:
    """Read from config.json what the vectors may be cut to (`matryoshka_dimensions`); most models say nothing."""
    folder = model.model.folder
    path = None if folder is None else Path(folder) / "config.json"
    if path is None or not path.is_file():
        return ()
    sizes = json.loads(path.read_text(encoding="utf-8")).get("matryoshka_dimensions") or []
    return tuple(sorted(size for size in sizes if isinstance(size, int) and 1 <= size <= model.dimension))
