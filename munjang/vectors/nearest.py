"""Exact nearest neighbours, a block of scores at a time, in numpy or in torch on a device.

A queries, B candidates, D dimension, K neighbours; R rows and C columns of a block of scores.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from munjang.progress import Progress
from munjang.types import Doubles, Floats, Ints
from munjang.vectors.similarity import SIMILARITIES, Similarity, unit

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Score = Callable[[Tensor, Tensor], Tensor]

BLOCK_ROWS = 2048  # queries that are scored at once by torch
BLOCK_SCORES = 1 << 25  # scores of one block: 134 MB
NO_PAIRS = (np.zeros(0, np.int64), np.zeros(0, np.int64))


class Neighbours(NamedTuple):
    """The nearest candidates of each query, best first."""

    scores_AK: Floats
    rows_AK: Ints


def nearest(
    a_AD: Floats,
    b_BD: Floats,
    num_neighbours: int,
    similarity: str = "cosine",
    excluded: tuple[Ints, Ints] = NO_PAIRS,
    device: "torch.device | None" = None,
    progress: bool | None = None,
) -> Neighbours:
    """Return the closest rows of `b` for each row of `a`, by torch on a device or, without one, by numpy.

    `excluded` pairs rows of `a` (ascending) with rows of `b` that must not be found; where too few are left, the score
    is minus infinity. Of equal scores numpy takes the first, torch any.
    """
    if similarity == "cosine":  # the lengths once, not for each block
        a_AD, b_BD, similarity = unit(a_AD), unit(b_BD), "dot"
    count = min(num_neighbours, len(b_BD))
    with Progress(len(a_AD) * len(b_BD), "searching", enabled=progress) as shown:
        if device is None:
            return _by_numpy(a_AD, b_BD, count, SIMILARITIES[similarity], excluded, shown)
        with ThreadPoolExecutor(1, "munjang") as pool:  # in a forked child torch would hang in the caller's thread
            arguments = (a_AD, b_BD, count, SIMILARITIES[similarity], excluded, device, shown)
            return pool.submit(_by_torch, *arguments).result()


def _by_numpy(
    a_AD: Floats, b_BD: Floats, count: int, similarity: Similarity, excluded: tuple[Ints, Ints], shown: Progress
) -> Neighbours:
    neighbours = Neighbours(np.empty((len(a_AD), count), np.float32), np.empty((len(a_AD), count), np.int64))
    block_rows = max(1, BLOCK_SCORES // max(len(b_BD), 1))
    for start in range(0, len(a_AD), block_rows):
        scores_RB = similarity(a_AD[start : start + block_rows], b_BD)
        _exclude(scores_RB, excluded, start, 0)
        for row, scores_B in enumerate(scores_RB, start):
            neighbours.rows_AK[row] = top_k(scores_B, count)
            neighbours.scores_AK[row] = scores_B[neighbours.rows_AK[row]]
        shown.advance(scores_RB.size)
    return neighbours


def _by_torch(
    a_AD: Floats,
    b_BD: Floats,
    count: int,
    similarity: Similarity,
    excluded: tuple[Ints, Ints],
    device: "torch.device",
    shown: Progress,
) -> Neighbours:
    import torch

    def score(rows_RD: "Tensor", block_CD: "Tensor") -> "Tensor":
        shown.advance(len(rows_RD) * len(block_CD))
        return similarity(rows_RD, block_CD)

    block_columns = max(BLOCK_SCORES // max(min(len(a_AD), BLOCK_ROWS), 1), count, 1)
    starts = range(0, len(b_BD), block_columns)
    blocks = (torch.from_numpy(b_BD[start : start + block_columns]).to(device) for start in starts)
    with torch.inference_mode():
        scores_AK, rows_AK = nearest_in_blocks(torch.from_numpy(a_AD), blocks, count, score, excluded, BLOCK_ROWS)
    return Neighbours(scores_AK.cpu().numpy(), rows_AK.cpu().numpy())


def nearest_in_blocks(
    a_AD: "Tensor",
    blocks: "Iterable[Tensor]",
    num_neighbours: int,
    score: "Score",
    excluded: tuple[Ints, Ints] = NO_PAIRS,
    block_rows: int = BLOCK_ROWS,
) -> "tuple[Tensor, Tensor]":
    """Return the scores and rows of the best candidates by any function, [A, K] each, on the candidates' device.

    The candidates come in blocks, each of which is used once; `score` gets some queries and a block.
    """
    import torch

    queries = torch.split(a_AD, block_rows)
    best = [(rows_RD[:, :0], rows_RD[:, :0].long()) for rows_RD in queries]
    first_column = 0
    for block_CD in blocks:
        for number, rows_RD in enumerate(queries):
            scores_RC = score(rows_RD.to(block_CD.device), block_CD)
            _exclude(scores_RC, excluded, number * block_rows, first_column)
            scores_RK, columns_RK = scores_RC.topk(min(num_neighbours, len(block_CD)), dim=1)
            columns_RK += first_column
            if first_column:
                scores_RK = torch.cat([best[number][0], scores_RK], 1)
                columns_RK = torch.cat([best[number][1], columns_RK], 1)
                scores_RK, order_RK = scores_RK.topk(min(num_neighbours, scores_RK.shape[1]), dim=1)
                columns_RK = columns_RK.gather(1, order_RK)
            best[number] = (scores_RK, columns_RK)
        first_column += len(block_CD)
    return torch.cat([scores_RK for scores_RK, _ in best]), torch.cat([columns_RK for _, columns_RK in best])


def _exclude(scores_RC: Any, excluded: tuple[Ints, Ints], first_row: int, first_column: int) -> None:
    """Set the excluded pairs of one block to minus infinity."""
    low, high = np.searchsorted(excluded[0], [first_row, first_row + len(scores_RC)])
    rows, columns = excluded[0][low:high] - first_row, excluded[1][low:high] - first_column
    is_inside = (columns >= 0) & (columns < scores_RC.shape[1])
    if is_inside.any():
        scores_RC[rows[is_inside], columns[is_inside]] = -np.inf


def top_k(scores_N: Floats | Doubles, k: int) -> Ints:
    """Return the indices of the k best scores, best first; of equal scores the first.

    >>> top_k(np.array([0.1, 0.9, 0.5, 0.9], np.float32), 2).tolist()
    [1, 3]
    """
    k = min(k, len(scores_N))
    if not k:
        return np.zeros(0, np.int64)
    places = np.flatnonzero(~(scores_N < kth_best(scores_N, k)))  # a NaN is below nothing
    return places[np.argsort(-scores_N[places], kind="stable")[:k]]


def kth_best(scores_N: Floats | Doubles, k: int) -> np.floating:
    """Return the k-th highest score, without sorting all of them."""
    return np.partition(scores_N, len(scores_N) - k)[-k]
