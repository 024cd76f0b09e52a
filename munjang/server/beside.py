"""BesideEmbedder: a sparse or late-interaction model as the batcher needs it, texts to payload to rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.errors import InputError
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.server.errors import Refused
from munjang.server.model_queue import Payload, Slice
from munjang.server.steps import Steps, pieces
from munjang.sparse_encoder import SparseEncoder

ROLES = ("query", "document")


class BesideEmbedder:
    """A model of sparse or of token vectors under its name here; its units are texts."""

    def __init__(self, name: str, model: SparseEncoder | MultiVectorEncoder) -> None:
        self.name, self.model = name, model
        self.kind = "sparse" if isinstance(model, SparseEncoder) else "late"

    @property
    def max_length(self) -> int | None:
        """Return the tokens that the model reads; None: any number."""
        return self.model.max_length

    @property
    def num_at_once(self) -> int:
        """Return how many batches are best computed side by side: one a core."""
        return self.model._engine.executor.num_workers

    def prepare(self, texts: Sequence[Any], role: str, truncate: bool) -> Steps[Payload]:
        """Count tokens; texts of both roles wait in one queue."""
        if role not in ROLES:
            raise InputError(f"Unknown prompt_name {role!r} for {self.name}; choose from {', '.join(ROLES)}.")
        if texts and not isinstance(texts[0], str):
            raise InputError(f"{self.name} takes texts, not token ids.")
        lengths, cut = list[int](), list[int]()
        for part in pieces(texts):
            tokens = self.model.tokenizer(list(texts[part]))
            lengths += tokens.lengths.tolist()
            cut += (np.flatnonzero(tokens.cut_rows) + part.start).tolist()
            yield
        if cut and not truncate:
            limit = self.model.max_length
            raise Refused("too_large", f"Text {cut[0]} has more tokens than the {limit} that {self.name} reads.")
        return Payload(list(texts), lengths, role, cut)

    def compute(self, batch: Sequence[Slice]) -> list[Sequence[Any]]:
        """Compute a row for each text of each part."""
        results: list[Sequence[Any]] = [[]] * len(batch)
        for role in ROLES:
            places = [place for place, part in enumerate(batch) if part.settings == role]
            texts = [text for place in places for text in batch[place].units]
            encode = self.model.encode_query if role == "query" else self.model.encode_document
            rows = list(encode(texts, progress=False)) if texts else []
            if not all(np.isfinite(each[-1] if isinstance(each, tuple) else each).all() for each in rows):
                raise Refused("model", f"{self.name} gave values that are not finite; its weights may be damaged.")
            start = 0
            for place in places:
                end = start + len(batch[place].units)
                results[place] = rows[start:end]
                start = end
        return results
