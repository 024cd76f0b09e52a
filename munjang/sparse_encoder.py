"""SparseEncoder: texts to sparse vectors, most often one weight per word of the vocabulary (SPLADE).

>>> from munjang import SparseEncoder
>>> model = SparseEncoder.load("path/to/splade")  # or a Hub name: "naver/splade-v3"
>>> [[(word, weight)]] = model.decode(model.encode_query(["how fast is light?"]), top_k=1)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np
import torch

from munjang import checkpoint
from munjang.arguments import check_arguments
from munjang.engine.devices import Devices, pick_device, pick_dtype
from munjang.engine.engine import Engine
from munjang.engine.run import Executor
from munjang.engine.sparse import SparseEncoding
from munjang.engine.states import token_states
from munjang.errors import InputError
from munjang.model import PathLike, TextEncoder
from munjang.nn.sparse import SparseNetwork
from munjang.nn.threads import run_in_thread
from munjang.text.inputs import as_texts, has_texts, pick_prompt
from munjang.types import Floats
from munjang.vectors.sparse import SparseVectors


class SparseOptions(TypedDict, total=False):
    """Options of `encode`, `encode_query` and `encode_document`."""

    prompt: str | None
    prompt_name: str | None
    max_active_dims: int | None
    batch_tokens: int | None
    progress: bool | None


class SparseEncoder(TextEncoder):
    """An encoder of sparse vectors. Any number of threads may use one at once; it pickles as its path and settings.

    Make one with `load`. Examples here read a folder of a SPLADE model: none is bundled.

    >>> SparseEncoder.load("path/to/splade").similarity_name
    'dot'
    """

    kind = "sparse"
    measures: ClassVar = ("dot", "cosine")
    settings: ClassVar = (*TextEncoder.settings, "max_active_dims")
    network: SparseNetwork

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        super().__init__(model, device, dtype, threads)
        self.dimension = self.network.num_outputs
        self.max_active_dims = model.max_active_dims
        self._query_engine = self._engine
        if model.query is not None:  # a table of weights: no network reads queries
            network = model.query.network.to_compute(device, torch.float32)
            self._query_engine = Engine(network, model.query.tokenizer, Executor(network, device, threads))

    @classmethod
    def load(
        cls, path: PathLike, device: Devices = None, dtype: str | None = None, threads: int | None = None
    ) -> "SparseEncoder":
        """Load a SPLADE, inference-free SPLADE or CSR model, or BGE-M3, from a folder or by a Hub name.

        Raises CheckpointError for a folder that holds no model, UnsupportedModel for one of another kind.

        >>> SparseEncoder.load("path/to/splade").info()["head"]
        'SpladeHead'
        """
        return cls._load(path, device, dtype, threads)

    @classmethod
    def create(
        cls, path: PathLike, texts: Sequence[str], device: str | None = None, dtype: str | None = None
    ) -> "SparseEncoder":
        """Start a SPLADE model on the encoder of any folder; training makes it useful.

        Its word head is fitted to `texts`, a few hundred of the kind to search, such that each token finds itself and
        the words like it.

        Raises InputError without texts.

        >>> SparseEncoder.create("ko-en-small", ["빛의 속도", "light is fast"]).info()["head"]
        'SpladeHead'
        """
        if not texts:
            raise InputError("A sparse model is started with some texts, to which its word head is fitted; give some.")
        where = pick_device(device)
        folder, torch_dtype = checkpoint.resolve(path), pick_dtype(dtype, where)
        states = token_states(folder, texts, where)
        return run_in_thread(lambda: cls(checkpoint.new_sparse(folder, *states), where, torch_dtype))

    @classmethod
    def _read(cls, folder: Path, *options: Any) -> checkpoint.Model:
        return checkpoint.load_sparse(folder)

    def encode(self, texts: Any, **options: Unpack[SparseOptions]) -> SparseVectors:
        """Turn texts into sparse vectors, a row each; one string gives one row.

        prompt, prompt_name: text put in front of each, or the name of one of the model's prompts. max_active_dims:
        keep so many of the greatest values of a row. batch_tokens: tokens of a batch. progress: None shows a bar for
        long work on a terminal.

        Raises InputError for a missing text or an unknown option.

        >>> len(SparseEncoder.load("path/to/splade").encode(["빛의 속도", "light"], max_active_dims=16))
        2
        """
        return self._encode(self._engine, texts, dict(options))

    def encode_query(self, texts: Any, **options: Unpack[SparseOptions]) -> SparseVectors:
        """Encode queries, with the model's own prompt or its own table for them. Options of `encode`.

        >>> len(SparseEncoder.load("path/to/splade").encode_query("빛의 속도"))
        1
        """
        return self._encode(self._query_engine, texts, self._with_prompt("query", dict(options)))

    def encode_document(self, texts: Any, **options: Unpack[SparseOptions]) -> SparseVectors:
        """Encode documents, with the model's own prompt for them. Options of `encode`.

        >>> len(SparseEncoder.load("path/to/splade").encode_document(["빛의 속도", "light"]))
        2
        """
        return self._encode(self._engine, texts, self._with_prompt("document", dict(options)))

    def _encode(self, engine: Engine, texts: Any, options: dict[str, Any]) -> SparseVectors:
        check_arguments("encode", options, SparseOptions.__annotations__)
        active = options.get("max_active_dims")
        active = self.max_active_dims if active is None else active
        if active is not None and active < 1:
            raise InputError(f"max_active_dims must be at least 1, not {active}.")
        prompt = pick_prompt(options.get("prompt"), options.get("prompt_name"), self.prompts, self.default_prompt_name)
        items = [texts] if isinstance(texts, str) else as_texts(texts)
        call = SparseEncoding(prompt, active, options.get("batch_tokens"))
        computed = engine.compute(items, call, False if isinstance(texts, str) else options.get("progress"))
        self._warn_cut(computed.num_cut, len(items), engine.tokenizer.max_length)
        vectors: SparseVectors = computed.spread()
        return vectors

    def similarity(self, queries: Any, documents: Any) -> Any:
        """Score every query with every document [A, B]; texts, or their sparse vectors. Two strings give a number.

        Raises InputError for anything but texts or sparse vectors.

        >>> SparseEncoder.load("path/to/splade").similarity(["빛"], ["빛", "물"]).shape
        (1, 2)
        """
        left, right = self._vectors(queries, self.encode_query), self._vectors(documents, self.encode_document)
        scores: Floats = left.dot(right)
        if self.similarity_name == "cosine":
            scores = scores / np.maximum(left.lengths[:, None] * right.lengths, 1e-12)
        return float(scores[0, 0]) if isinstance(queries, str) and isinstance(documents, str) else scores

    def _vectors(self, side: Any, encode: Any) -> SparseVectors:
        if isinstance(side, SparseVectors):
            return side
        if not isinstance(side, str) and not has_texts(side):
            raise InputError(f"similarity() takes texts or SparseVectors, not {type(side).__name__}.")
        vectors: SparseVectors = encode(side)
        return vectors

    def decode(self, vectors: SparseVectors, top_k: int | None = None) -> list[list[tuple[str, float]]]:
        """Name the words of sparse vectors with their weights, the heaviest first; features of CSR by their number.

        `top_k`: words of each row; None: all.

        >>> model = SparseEncoder.load("path/to/splade")
        >>> [len(words) for words in model.decode(model.encode(["빛의 속도"]), top_k=3)]
        [3]
        """
        name = self.tokenizer.rust.id_to_token if self.has_words else str
        rows = []
        for indices, values in vectors:
            order = np.argsort(-values, kind="stable")[:top_k]
            rows.append([(name(int(indices[at])) or str(indices[at]), float(values[at])) for at in order])
        return rows

    @property
    def has_words(self) -> bool:
        """Tell whether the dimensions are tokens of the vocabulary, as those of CSR are not."""
        return self.network.has_words

    def _write(self, folder: Path, format: str | None) -> None:
        self.model.similarity, self.model.max_active_dims = self.similarity_name, self.max_active_dims
        checkpoint.save_sparse(self.model, folder, format)

    def _facts(self) -> dict[str, object]:
        return {
            "head": type(self.network.head).__name__,
            "dimension": self.dimension,
            "similarity": self.similarity_name,
            "max_active_dims": self.max_active_dims,
            "queries": "as documents" if self.model.query is None else "by a table of weights",
        }
