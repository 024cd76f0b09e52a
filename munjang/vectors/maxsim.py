"""MaxSim: how well the token vectors of a document answer those of a query. Nothing is padded.

T tokens of all documents of a block, S tokens of all queries of a block, A queries, B documents, D dimension.

A query's score is the sum, over its tokens, of the highest dot product with any token of the document (late
interaction, ColBERT). Documents lie one behind the other in one matrix, so a block of scores is one product and one
maximum by segments. Arrays are computed by numpy, tensors by torch on their device. Token vectors of unit length may be
stored as int8 (`to_int8`): a quarter of the bytes, and scores that differ by less than 0.01 per query token.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError
from munjang.types import Floats, Ints

MAX_BLOCK_SCORES = 1 << 22  # 16 MB: more no longer fits the caches, and costs memory
EMPTY_SCORE = np.float32(-1e9)  # of a document without tokens: below every other, and a number that JSON has
INT8_STEPS = 127  # codes of the length one


def maxsim(query_TD: Any, documents: Sequence[Any]) -> Any:
    """Score documents, each an array [T, D] of token vectors, against one query: float32 [B].

    >>> maxsim(np.eye(2, dtype=np.float32), [np.eye(2, dtype=np.float32), np.array([[0.5, 0.25]], np.float32)])
    array([2.  , 0.75], dtype=float32)
    """
    return maxsim_matrix([query_TD], documents)[0]


def maxsim_matrix(queries: Sequence[Any], documents: Sequence[Any]) -> Any:
    """Score every document against every query: float32 [A, B], an array for arrays and a tensor for tensors."""
    is_array = not any(hasattr(vectors, "is_cuda") for vectors in (*queries[:1], *documents[:1]))
    dimension = _check([*queries, *documents], is_array)
    all_lengths = _lengths(documents)
    order = np.argsort(-all_lengths, kind="stable")[: int((all_lengths > 0).sum())]
    lengths, query_lengths = all_lengths[order], _lengths(queries)
    scores: Any
    if is_array:
        scores = np.full((len(queries), len(documents)), EMPTY_SCORE, np.float32)
    else:
        import torch

        device = (*documents[:1], *queries[:1])[0].device
        scores = torch.full((len(queries), len(documents)), float(EMPTY_SCORE), device=device)
    if not dimension or not len(order) or not len(queries):
        return scores
    for some in _blocks(query_lengths, np.arange(len(queries)), max(1, MAX_BLOCK_SCORES // int(lengths[0]))):
        num_columns = int(query_lengths[some].sum())
        if not num_columns:
            scores[np.ix_(some, order)] = 0
            continue
        queries_SD = _join([queries[row] for row in some], is_array)
        for block in _blocks(lengths, order, max(1, MAX_BLOCK_SCORES // num_columns)):
            block_TD = _join([documents[row] for row in block], is_array)
            best_BS = _highest(block_TD @ queries_SD.T, all_lengths[block], is_array)
            sums_BA = _sums(best_BS, query_lengths[some], is_array)
            scores[np.ix_(some, block)] = sums_BA.T
    return scores


def to_int8(vectors_TD: Floats) -> NDArray[np.int8]:
    """Round unit vectors to codes from -127 to 127, which `maxsim` takes like the vectors themselves."""
    if vectors_TD.size and float(np.abs(vectors_TD).max()) > 1 + 1e-3:
        raise InputError(
            "int8 is for token vectors of unit length; these are longer, so their model does not end in a Normalize."
        )
    return np.rint(vectors_TD * INT8_STEPS).astype(np.int8)


def _lengths(vectors: Sequence[Any]) -> Ints:
    return np.fromiter((len(each) for each in vectors), np.int64, len(vectors))


def _check(vectors: Sequence[Any], is_array: bool) -> int:
    """Return the dimension of all vectors; refuse another shape, dimension or library."""
    dimension = 0
    for each in vectors:
        if isinstance(each, np.ndarray) != is_array or each.ndim != 2:
            shape = f" of shape {list(each.shape)}" if hasattr(each, "shape") else ""
            raise InputError(
                "MaxSim compares matrices of token vectors [T, D], all arrays or all tensors, "
                f"not {type(each).__name__}{shape}."
            )
        if len(each) and dimension not in (0, each.shape[1]):
            raise InputError(f"Token vectors of {dimension} and of {each.shape[1]} dimensions can't be of one model.")
        dimension = each.shape[1] if len(each) else dimension
    return dimension


def _blocks(lengths: Ints, rows: Ints, max_tokens: int) -> list[Ints]:
    """Cut rows with these lengths into blocks of at most so many tokens, at least one row each."""
    ends, blocks, start = np.cumsum(lengths), [], 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + max_tokens, side="right")))
        blocks.append(rows[start:end])
        start = end
    return blocks


def _join(matrices: list[Any], is_array: bool) -> Any:
    """Put token vectors one behind the other, in float32; int8 codes become the vectors that they stand for."""
    matrices = [matrix for matrix in matrices if len(matrix)]
    joined: Any
    if is_array:
        joined = np.concatenate(matrices)
        is_coded, floats = joined.dtype == np.int8, joined.astype(np.float32, copy=False)
    else:
        import torch

        joined = torch.cat(matrices)
        is_coded, floats = joined.dtype == torch.int8, joined.float()
    return floats / INT8_STEPS if is_coded else floats


def _highest(scores_TS: Any, lengths: Ints, is_array: bool) -> Any:
    """Return the highest score of each document's tokens: [B, S]."""
    if is_array:
        return np.maximum.reduceat(scores_TS, np.cumsum(lengths) - lengths, axis=0)
    import torch

    return torch.segment_reduce(scores_TS, "max", lengths=torch.from_numpy(lengths).to(scores_TS.device), axis=0)


def _sums(best_BS: Any, lengths: Ints, is_array: bool) -> Any:
    """Add up the tokens of each query; one without tokens scores 0: [B, A]."""
    if is_array:
        ends = np.concatenate([np.zeros((len(best_BS), 1)), np.cumsum(best_BS, axis=1, dtype=np.float64)], axis=1)
        edges = np.concatenate([[0], np.cumsum(lengths)])
        return (ends[:, edges[1:]] - ends[:, edges[:-1]]).astype(np.float32)
    import torch

    sums_AB = torch.segment_reduce(
        best_BS.T.contiguous(), "sum", lengths=torch.from_numpy(lengths).to(best_BS.device), axis=0
    )
    return sums_AB.T
