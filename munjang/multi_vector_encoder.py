"""MultiVectorEncoder: texts to one vector per token, for late interaction (ColBERT).

>>> from munjang import MultiVectorEncoder
>>> model = MultiVectorEncoder.load("lightonai/GTE-ModernColBERT-v1")  # doctest: +SKIP
>>> model.similarity(["how fast is light?"], ["Light travels 300,000 km a second."])  # doctest: +SKIP
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, SupportsIndex, TypedDict, Unpack

import numpy as np
import torch

from munjang import checkpoint
from munjang.arguments import check_arguments
from munjang.checkpoint.late import MEASURES
from munjang.checkpoint.model import LateSettings, TokenPooling
from munjang.engine.devices import Devices, pick_device, pick_dtype
from munjang.engine.late import TokenEncoding
from munjang.engine.states import token_states
from munjang.errors import InputError, unknown
from munjang.model import PathLike, TextEncoder
from munjang.nn.late import TokenNetwork
from munjang.nn.threads import run_in_thread
from munjang.text.inputs import as_texts, has_texts, pick_prompt
from munjang.types import Array, Floats, Hit
from munjang.vectors.maxsim import maxsim_matrix, to_int8
from munjang.vectors.token_pooling import pool_tokens

PRECISIONS = ("float32", "int8")


class TokenOptions(TypedDict, total=False):
    """Options of `encode_query` and `encode_document`."""

    prompt: str | None
    prompt_name: str | None
    precision: str
    pool_factor: float | None
    batch_tokens: int | None
    progress: bool | None


class MultiVectorEncoder(TextEncoder):
    """A late-interaction encoder. Any number of threads may use one at once; it pickles as its path and settings.

    Make one with `load`, or with `create` to train it. Examples here use an untrained one: no trained one is bundled.

    >>> MultiVectorEncoder.create("ko-en-small", dimension=64).dimension
    64
    """

    kind = "multi-vector"
    measures: ClassVar = MEASURES
    network: TokenNetwork

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        super().__init__(model, device, dtype, threads)
        self.late = model.late or LateSettings()
        self.dimension = self.network.num_outputs

    @classmethod
    def load(
        cls, path: PathLike, device: Devices = None, dtype: str | None = None, threads: int | None = None
    ) -> "MultiVectorEncoder":
        """Load a model of sentence-transformers 6, PyLate or ColBERT, or BGE-M3, from a folder or by a Hub name.

        Raises CheckpointError for a folder that holds no model, UnsupportedModel for one of another kind.

        >>> MultiVectorEncoder.create("ko-en-small", dimension=64).save("my-late-model")
        >>> MultiVectorEncoder.load("my-late-model").dimension
        64
        """
        return cls._load(path, device, dtype, threads)

    @classmethod
    def _read(cls, folder: Path, *options: Any) -> checkpoint.Model:
        return checkpoint.load_late(folder)

    @classmethod
    def create(
        cls,
        path: PathLike,
        dimension: int = 128,
        device: str | None = None,
        dtype: str | None = None,
        texts: Sequence[str] | None = None,
    ) -> "MultiVectorEncoder":
        """Start a model on the encoder of any folder; its projection is still untrained.

        It goes to the directions in which the tokens of `texts` differ most, to random ones without any.

        Raises InputError for a dimension below 1.

        >>> MultiVectorEncoder.create("ko-en-small", dimension=64).info()["kind"]
        'multi-vector-encoder'
        """
        if dimension < 1:
            raise InputError(f"dimension must be at least 1, not {dimension}.")
        where = pick_device(device)
        folder, torch_dtype = checkpoint.resolve(path), pick_dtype(dtype, where)
        states_ND = token_states(folder, texts, where)[0] if texts else None
        return run_in_thread(lambda: cls(checkpoint.new_late(folder, dimension, states_ND), where, torch_dtype))

    def encode_query(self, texts: Any, **options: Unpack[TokenOptions]) -> Any:
        """Turn queries into token vectors: a list of arrays [T, D], one array for one string.

        prompt, prompt_name: in place of the model's own marker or prompt. precision: float32, or int8 (codes of unit
        vectors, which `similarity` takes as well). pool_factor: keep one in so many token vectors, merged by
        likeness. batch_tokens: tokens of a batch. progress: None shows a bar for long work on a terminal.

        Raises InputError for a missing text or an unknown option.

        >>> MultiVectorEncoder.create("ko-en-small", dimension=64).encode_query("빛의 속도").shape[1]
        64
        """
        return self._encode("query", texts, dict(options))

    def encode_document(self, texts: Any, **options: Unpack[TokenOptions]) -> Any:
        """Turn documents into token vectors, without those of the model's skip-list; options of `encode_query`.

        >>> model = MultiVectorEncoder.create("ko-en-small", dimension=64)
        >>> [row.shape[1] for row in model.encode_document(["빛", "물"])]
        [64, 64]
        """
        return self._encode("document", texts, dict(options))

    def encode(self, texts: Any, **options: Unpack[TokenOptions]) -> Any:
        """Turn texts into token vectors as documents, without a prompt of its own; options of `encode_query`.

        >>> MultiVectorEncoder.create("ko-en-small", dimension=64).encode("a text", precision="int8").dtype
        dtype('int8')
        """
        return self._encode(None, texts, dict(options))

    def _encode(self, role: str | None, texts: Any, options: dict[str, Any]) -> Any:
        check_arguments("encode", options, TokenOptions.__annotations__)
        options = self._with_prompt(role, options) if role else options
        precision, factor = options.get("precision", "float32"), options.get("pool_factor")
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        if precision == "int8" and not self.network.is_unit:
            raise InputError("precision='int8' is for unit token vectors; this model does not end in a Normalize.")
        prompt = pick_prompt(options.get("prompt"), options.get("prompt_name"), self.prompts, self.default_prompt_name)
        call = self._call(role, prompt, options.get("batch_tokens"))
        items = [texts] if isinstance(texts, str) else as_texts(texts)
        computed = self._engine.compute(items, call, False if isinstance(texts, str) else options.get("progress"))
        self._warn_cut(computed.num_cut, len(items), call.max_length)
        rows: list[Any] = [self._finish(row, role or "document", factor, precision) for row in computed.rows]
        rows = computed.spread(rows)
        return rows[0] if isinstance(texts, str) else rows

    def _call(self, role: str | None, prompt: str, batch_tokens: int | None) -> TokenEncoding:
        late, limits = self.late, [self.max_length]
        expansion = late.expansion if role == "query" else None
        if expansion is not None and expansion.is_fixed:
            limits.append(expansion.length)
        elif role == "query" and late.query_length is not None:
            limits.append(max(late.query_length, 0 if expansion is None else expansion.length))
        elif role == "document":
            limits.append(late.document_length)
        max_length = min((limit for limit in limits if limit is not None), default=None)
        dropped = tuple(self.dropped(role or "document"))
        kept = None if role == "query" else late.kept_ids
        return TokenEncoding(prompt, max_length, expansion, dropped, kept, batch_tokens)

    def dropped(self, role: str) -> list[int]:
        """Return the tokens of a role, query or document, that get no vector.

        >>> MultiVectorEncoder.create("ko-en-small", dimension=64).dropped("query")
        []
        """
        words = self.late.skipped_words if role in self.late.skipping_roles else ()
        ids = (self.tokenizer.rust.token_to_id(word) for word in words)
        return [number for number in ids if number is not None]

    def _finish(self, vectors_TD: Floats, role: str, factor: float | None, precision: str) -> Array:
        own = self.late.pooling
        if own is not None and role in own.roles:
            vectors_TD = _pooled(vectors_TD, own)
        if factor is not None:
            vectors_TD = _pooled(vectors_TD, TokenPooling(factor))
        return to_int8(vectors_TD) if precision == "int8" else vectors_TD

    def finished(self, rows: Sequence[Floats], pool_factor: float | None) -> list[Any]:
        """Pool the token vectors of documents as `encode_document` does.

        `pool_factor`: keep one in so many token vectors; None pools as the model's own settings say.

        >>> model = MultiVectorEncoder.create("ko-en-small", dimension=64)
        >>> [row.shape for row in model.finished([np.eye(8, 64, dtype=np.float32)], pool_factor=None)]
        [(8, 64)]
        """
        return [self._finish(row, "document", pool_factor, "float32") for row in rows]

    def similarity(self, queries: Any, documents: Any) -> Any:
        """Score every query with every document by MaxSim [A, B]; texts, or token vectors of `encode_*`.

        Two strings give a number.

        >>> model = MultiVectorEncoder.create("ko-en-small", dimension=64)
        >>> model.similarity(["빛의 속도"], ["빛은 1초에 30만 km를 간다.", "김치를 담그는 방법"]).shape
        (1, 2)
        """
        sides = self._vectors("query", queries), self._vectors("document", documents)
        scores = maxsim_matrix(*sides)
        if self.similarity_name == "meanmaxsim":
            counts = np.maximum([len(vectors) for vectors in sides[0]], 1).astype(np.float32)
            scores = scores / (
                counts[:, None] if isinstance(scores, np.ndarray) else scores.new_tensor(counts)[:, None]
            )
        return float(scores[0, 0]) if isinstance(queries, str) and isinstance(documents, str) else scores

    def _vectors(self, role: str, side: Any) -> list[Any]:
        if isinstance(side, str):
            return [self._encode(role, side, {})]
        if isinstance(side, np.ndarray) and side.ndim == 2:
            return [side]
        vectors: list[Any] = self._encode(role, side, {}) if has_texts(side) else list(side)
        return vectors

    def rank(self, query: str, documents: Any, top_k: int | None = None) -> list[Hit]:
        """Rank documents, as texts or as their token vectors, by MaxSim with one query, best first.

        `top_k`: how many hits; None: all. Raises InputError for fewer than one.

        >>> model = MultiVectorEncoder.create("ko-en-small", dimension=64)
        >>> model.rank("빛", ["김치를 담그는 방법", "빛"], top_k=1)[0].index
        1
        """
        if top_k is not None and (not isinstance(top_k, SupportsIndex) or top_k < 1):
            raise InputError(f"top_k must be a whole number, at least 1, not {top_k!r}.")
        texts = as_texts(documents, "documents") if has_texts(documents) else None
        scores = self.similarity([query], list(documents) if texts is None else texts)[0]
        order = np.argsort(-np.asarray(scores), kind="stable")[:top_k]
        return [
            Hit(int(at), "" if texts is None else texts[at], float(scores[at]), self.similarity_name) for at in order
        ]

    def _write(self, folder: Path, format: str | None) -> None:
        self.model.similarity, self.model.late = self.similarity_name, self.late
        checkpoint.save_late(self.model, folder, format)

    def _facts(self) -> dict[str, object]:
        expansion = self.late.expansion
        return {
            "modules": self.network.module_names,
            "dimension": self.dimension,
            "similarity": self.similarity_name,
            "query_length": self.late.query_length if expansion is None else expansion.length,
            "document_length": self.late.document_length,
            "expands_queries": expansion is not None,
            "skipped_words": len(self.late.skipped_words),
        }


def _pooled(vectors_TD: Floats, pooling: TokenPooling) -> Floats:
    return pool_tokens(vectors_TD, pooling.factor, pooling.num_protected, pooling.is_normalized)
