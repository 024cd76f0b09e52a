"""Sparse and token vectors beside the dense ones: their checks, their bytes, their scores.    N rows, Q queries."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from munjang.errors import InputError, unknown
from munjang.stores.base import Abilities, Found, Rows, Schema
from munjang.stores.scoring import best
from munjang.types import Array, Floats
from munjang.vectors.maxsim import EMPTY_SCORE, maxsim_matrix
from munjang.vectors.sparse import SparseVectors

TOKEN_DTYPES = {"int8": np.int8, "float16": np.float16, "float32": np.float32}
Score = Callable[[Any, Any], Floats]  # queries and rows to [Q, N]
NO_SPARSE = "this index keeps no sparse vectors; create one with a sparse model"
NO_TOKENS = "this index keeps no token vectors; create one with a late-interaction model"


def check_kept(schema: Schema, abilities: Abilities, engine: str) -> None:
    """Refuse sparse and token vectors that an engine can't keep."""
    for what, dimension, can in (
        ("sparse vectors", schema.sparse_dimension, abilities.has_sparse),
        ("token vectors", schema.token_dimension, abilities.has_tokens),
    ):
        if dimension < 0:
            raise InputError(f"The dimension of {what} should be at least 0, not {dimension}.")
        if dimension and not can:
            raise InputError(f"{engine} can't search {what}; a folder (LanceDB) or memory: can.")
    if schema.token_dimension and schema.tokens not in TOKEN_DTYPES:
        raise unknown("kind of token vectors", schema.tokens, TOKEN_DTYPES)


def check_beside(rows: Rows, schema: Schema) -> None:
    """Refuse rows whose sparse or token vectors don't fit the schema."""
    if (rows.sparse is None) == bool(schema.sparse_dimension):
        raise InputError(f"Rows to add need {'' if schema.sparse_dimension else 'no '}sparse vectors in this store.")
    if (rows.tokens is None) == bool(schema.token_dimension):
        raise InputError(f"Rows to add need {'' if schema.token_dimension else 'no '}token vectors in this store.")
    if rows.sparse is not None:
        if rows.sparse.shape != (len(rows), schema.sparse_dimension):
            wanted = f"{len(rows)} of dimension {schema.sparse_dimension}"
            raise InputError(f"The store expects sparse vectors {wanted}, not {list(rows.sparse.shape)}.")
        if not np.isfinite(rows.sparse.values).all():
            raise InputError("A sparse vector holds NaN or infinity.")
    if rows.tokens is None:
        return
    if len(rows.tokens) != len(rows):
        raise InputError(f"There are {len(rows):,} ids but {len(rows.tokens):,} matrices of token vectors.")
    dtype = np.dtype(TOKEN_DTYPES[schema.tokens])
    for row_id, vectors_TD in zip(rows.ids, rows.tokens, strict=True):
        if vectors_TD.ndim != 2 or vectors_TD.shape[1] != schema.token_dimension or vectors_TD.dtype != dtype:
            given = f"{vectors_TD.dtype} {list(vectors_TD.shape)}"
            raise InputError(
                f"The store holds token vectors {dtype} [T, {schema.token_dimension}]; {row_id!r:.40} has {given}."
            )
        if dtype.kind == "f" and not np.isfinite(vectors_TD).all():
            raise InputError(f"The token vectors of {row_id!r:.40} hold NaN or infinity.")


def check_sparse_queries(queries: SparseVectors, schema: Schema, k: int) -> None:
    """Refuse queries of another dimension, or any where no sparse vectors are kept."""
    if not schema.sparse_dimension:
        raise InputError(f"Can't search by sparse vectors: {NO_SPARSE}.")
    if queries.dim != schema.sparse_dimension:
        raise InputError(f"The store's sparse vectors have {schema.sparse_dimension} dimensions, not {queries.dim}.")
    check_number(k)


def check_token_queries(queries: Sequence[Array], schema: Schema, k: int) -> None:
    """Refuse queries of another dimension, or any where no token vectors are kept."""
    if not schema.token_dimension:
        raise InputError(f"Can't search by token vectors: {NO_TOKENS}.")
    for query_TD in queries:
        if query_TD.ndim != 2 or query_TD.shape[1] != schema.token_dimension:
            given = list(query_TD.shape)
            raise InputError(f"The store's token vectors have {schema.token_dimension} dimensions; given are {given}.")
    check_number(k)


def check_number(k: int) -> None:
    """Refuse anything but a whole number from 1."""
    if not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number from 1, not {k!r}.")


def sparse_bytes(rows: SparseVectors) -> list[bytes]:
    """Return each row as bytes: its dimensions, then its values."""
    return [indices.astype("<i4").tobytes() + values.astype("<f4").tobytes() for indices, values in rows]


def sparse_of(values: Sequence[bytes], dimension: int) -> SparseVectors:
    """Read what `sparse_bytes` wrote."""
    lengths = np.fromiter((len(value) // 8 for value in values), np.int64, len(values))
    indices = [np.frombuffer(value, "<i4", len(value) // 8) for value in values]
    weights = [np.frombuffer(value, "<f4", offset=len(value) // 2) for value in values]
    return SparseVectors(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([np.zeros(0, np.int32), *indices]),
        np.concatenate([np.zeros(0, np.float32), *weights]),
        dimension,
    )


def token_bytes(tokens: Sequence[Array]) -> list[bytes]:
    """Return each matrix as bytes."""
    return [np.ascontiguousarray(vectors_TD).tobytes() for vectors_TD in tokens]


def tokens_of(values: Sequence[bytes], schema: Schema) -> list[Array]:
    """Read what `token_bytes` wrote."""
    dtype = TOKEN_DTYPES[schema.tokens]
    return [np.frombuffer(value, dtype).reshape(-1, schema.token_dimension) for value in values]


def sparse_scores(queries: SparseVectors, rows: SparseVectors) -> Floats:
    """Score by dot products; what shares nothing with a query scores -infinity: it is not found."""
    scores_QN = queries.dot(rows)
    return np.where(scores_QN > 0, scores_QN, np.float32(-np.inf))


def token_scores(queries: Sequence[Array], rows: Sequence[Array]) -> Floats:
    """Score by MaxSim; a row or query without tokens scores -infinity."""
    scores_QN: Floats = np.asarray(maxsim_matrix(queries, rows)).reshape(len(queries), len(rows))
    has_tokens = np.array([len(query_TD) > 0 for query_TD in queries], np.bool_)
    return np.where(has_tokens[:, None] & (scores_QN > EMPTY_SCORE), scores_QN, np.float32(-np.inf))


def merged(found: Sequence[Found], ids: Sequence[str], scores_QN: Floats, k: int) -> list[Found]:
    """Add rows with finite scores to what each query found before, and keep the k best."""
    kept = []
    for before, scores_N in zip(found, scores_QN.astype(np.float64), strict=True):
        rows = np.flatnonzero(np.isfinite(scores_N))
        names = before.ids + [ids[row] for row in rows.tolist()]
        kept.append(best(names, np.concatenate([before.scores, scores_N[rows]]), k))
    return kept
