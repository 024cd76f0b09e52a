"""The models of an index: its own, and beside it those of sparse and of token vectors."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from munjang import checkpoint
from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError, MunjangError, unknown
from munjang.index.shared import encode_once, is_shared
from munjang.index.ways import Asked
from munjang.model import LoadedModel
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.sparse_encoder import SparseEncoder
from munjang.stores.base import Schema
from munjang.stores.beside import TOKEN_DTYPES
from munjang.types import Array, Floats
from munjang.vectors.maxsim import to_int8
from munjang.vectors.sparse import SparseVectors

Given: TypeAlias = Any  # a model, its folder or name, or None
LOADERS: dict[str, Any] = {"sparse": SparseEncoder, "late": MultiVectorEncoder}


class ModelMismatch(MunjangError):
    """An index is opened with another model than the one that made its vectors.

    `munjang index rebuild` encodes the rows of an index again, with another model.

    >>> issubclass(ModelMismatch, MunjangError)
    True
    """


@dataclass(frozen=True)
class Encoders:
    """The models of an index, by the way of searching that reads their vectors."""

    dense: BiEncoder
    sparse: SparseEncoder | None = None
    late: MultiVectorEncoder | None = None
    tokens: str = "float32"  # as token vectors are stored
    pool_factor: float | None = None  # one token vector is kept of so many

    @classmethod
    def new(
        cls,
        dense: BiEncoder,
        sparse: Given = None,
        late: Given = None,
        tokens: str | None = None,
        pool_factor: float | None = None,
        device: str | None = None,
    ) -> "Encoders":
        """Load what a new index is made with."""
        if late is None and (tokens is not None or pool_factor is not None):
            raise InputError("tokens and pool_factor are of token vectors; name the model that gives them with late=.")
        if tokens is not None and tokens not in TOKEN_DTYPES:
            raise unknown("kind of token vectors", tokens, TOKEN_DTYPES)
        loaded = {way: load(way, model, device) for way, model in (("sparse", sparse), ("late", late))}
        encoder = loaded["late"]
        tokens = tokens or ("int8" if encoder is None or encoder.network.is_unit else "float16")
        return cls(dense, loaded["sparse"], encoder, tokens, pool_factor)

    @classmethod
    def recorded(cls, dense: BiEncoder, schema: Schema, device: str | None, given: Mapping[str, Given]) -> "Encoders":
        """Load what an existing index was made with; models that are given have to be the same."""
        facts, loaded = schema.facts.get("beside", {}), {}
        for way in LOADERS:
            stated, model = facts.get(way), given.get(way)
            if stated is None and model is not None:
                raise InputError(
                    f"This index keeps no vectors for {way}; give the model to `reembed`, which adds them."
                )
            if stated is not None:
                loaded[way] = load(way, stated["model"] if model is None else model, device)
                check_same(loaded[way], stated, f"{way} vectors")
        for name, own in (("tokens", schema.tokens), ("pool_factor", facts.get("pool_factor"))):
            if given.get(name) not in (None, own):
                raise InputError(f"This index was made with {name}={own!r}, not {given[name]!r}; that can't change.")
        return cls(dense, loaded.get("sparse"), loaded.get("late"), schema.tokens, facts.get("pool_factor"))

    @property
    def others(self) -> list[SparseEncoder | MultiVectorEncoder]:
        """The models beside the index's own."""
        return [model for model in (self.sparse, self.late) if model is not None]

    def facts(self, names: Mapping[str, Given]) -> dict[str, Any]:
        """Return what is recorded of the models beside the index's own; `names`: how they were named."""
        models = {"sparse": self.sparse, "late": self.late}
        found: dict[str, Any] = {
            way: {"model": name_of(model, names.get(way)), "fingerprint": model.fingerprint}
            for way, model in models.items()
            if model is not None
        }
        return found | ({} if self.pool_factor is None else {"pool_factor": self.pool_factor})

    def document(self, texts: Sequence[str], progress: bool | None = False) -> tuple[Floats, dict[str, Any]]:
        """Return the vectors of passages, and the sparse and token vectors beside them; in one pass where it can be."""
        if self.sparse is None or self.late is None or not is_shared(self.dense, self.sparse, self.late):
            return self.dense.encode_document(list(texts), progress=progress), self.beside(texts, progress)
        vectors_ND, sparse, tokens = encode_once(self.dense, self.sparse, self.late, texts, progress)
        return vectors_ND, {
            "sparse": self._scaled(sparse),
            "tokens": self._stored(self.late.finished(tokens, self.pool_factor)),
        }

    def beside(self, texts: Sequence[str], progress: bool | None = False) -> dict[str, Any]:
        """Return the sparse and token vectors of passages, as fields of Rows."""
        found: dict[str, Any] = {}
        if self.sparse is not None:
            found["sparse"] = self._scaled(self.sparse.encode_document(list(texts), progress=progress))
        if self.late is not None:
            found["tokens"] = self._tokens(self.late, list(texts), progress)
        return found

    def _tokens(self, model: MultiVectorEncoder, texts: list[str], progress: bool | None) -> list[Array]:
        return self._stored(model.encode_document(texts, pool_factor=self.pool_factor, progress=progress))

    def _stored(self, rows: list[Floats]) -> list[Array]:
        """Convert token vectors to what the store keeps."""
        if self.tokens == "int8":
            return [to_int8(vectors_TD) for vectors_TD in rows]
        return [vectors_TD.astype(TOKEN_DTYPES[self.tokens]) for vectors_TD in rows]

    def asked(self, queries: Sequence[str] | None, vectors_QD: Floats | None, ways: Sequence[str]) -> Asked:
        """Return queries with their vectors, of the ways that are searched by and not known yet."""
        if queries is None:
            return Asked(None, vectors_QD)
        texts, sparse, tokens = list(queries), None, None
        if vectors_QD is None and "dense" in ways:
            vectors_QD = self.dense.encode_query(texts, progress=False)
        if "sparse" in ways and self.sparse is not None:
            sparse = self._scaled(self.sparse.encode_query(texts, progress=False))
        if "late" in ways and self.late is not None:
            tokens = self.late.encode_query(texts, progress=False)
        return Asked(queries, vectors_QD, sparse, tokens)

    def _scaled(self, vectors: SparseVectors) -> SparseVectors:
        """Bring rows to unit length where the model compares by cosine; stores compare by dot products."""
        if self.sparse is None or self.sparse.similarity_name == "dot":
            return vectors
        lengths = np.repeat(np.maximum(vectors.lengths, 1e-12), np.diff(vectors.indptr))
        return SparseVectors(vectors.indptr, vectors.indices, vectors.values / lengths, vectors.dim)


def load_own(model: Given, device: str | None) -> BiEncoder:
    """Load the index's own model; None: the bundled one."""
    return model if isinstance(model, BiEncoder) else BiEncoder.load(model, device=device)


def load(way: str, model: Given, device: str | None) -> Any:
    """Load the model of a way; one that is loaded is returned as it is."""
    if model is None or isinstance(model, LOADERS[way]):
        return model
    if isinstance(model, LoadedModel):
        raise InputError(f"{way}= takes a {LOADERS[way].__name__}, not a {type(model).__name__}.")
    return LOADERS[way].load(model, device=device)


def check_same(model: LoadedModel, stated: Mapping[str, Any], what: str) -> None:
    """Refuse another model than the one that an index recorded."""
    if model.fingerprint != stated["fingerprint"]:
        raise ModelMismatch(
            f"The index holds {what} of {stated['model']} ({stated['fingerprint'][:12]}), not of this model "
            f"({model.fingerprint[:12]}). Open it without a model, or compute its vectors anew with reembed."
        )


def name_of(model: LoadedModel, given: Given) -> str:
    """Return the name to find a model by again: as it was given, a bundled one's, or its full path."""
    where = model.model.folder if given is None or isinstance(given, LoadedModel) else given
    is_folder = Path(where).is_dir()
    return (checkpoint.name_of(Path(where)) or os.path.abspath(where)) if is_folder else os.fspath(where)
