"""Find candidates by looking at every row, in blocks.    N rows, Q queries, D dimension, R rows of a block.

A candidate here is a row that may be among the k nearest: matrix products round differently from block to block, so
rows that are a hair below the k-th are kept too, and `scoring.rescored` decides.
"""

import numpy as np

from munjang.types import Array, Floats, Ints
from munjang.vectors.nearest import kth_best
from munjang.vectors.similarity import Vectors, unit

BLOCK_SCORES = 1 << 21  # of one block: 8 MB
MAX_QUERIES = 256  # at a time
METRICS = ("cosine", "dot", "euclidean")  # whose order inner products and lengths give
GROUP_SCORES = 64  # whose maximum stands for them
MAX_ROUNDING = 1e-5  # of the largest score that is possible


def candidates(queries_QD: Floats, vectors_ND: Array, lengths_N: Floats, rows: Ints, k: int, metric: str) -> list[Ints]:
    """Return for each query the listed rows that can be among its k nearest. `lengths` are those of the vectors."""
    found: list[Ints] = []
    for start in range(0, len(queries_QD), MAX_QUERIES):
        queries = queries_QD[start : start + MAX_QUERIES]
        found += _candidates(unit(queries) if metric == "cosine" else queries, vectors_ND, lengths_N, rows, k, metric)
    return found


def _candidates(
    queries_QD: Floats, vectors_ND: Array, lengths_N: Floats, rows: Ints, k: int, metric: str
) -> list[Ints]:
    num_queries = len(queries_QD)
    block_rows = max(BLOCK_SCORES // num_queries, 1024)
    slack_Q = slack(queries_QD, lengths_N, metric)
    limits_Q = np.full(num_queries, -np.inf, np.float32)
    kept_Q: list[list[tuple[Ints, Floats]]] = [[] for _ in range(num_queries)]
    for start in range(0, len(rows), block_rows):
        block = rows[start : start + block_rows]
        products_QR = queries_QD @ _taken(vectors_ND, block).T
        scores_QR = rank_scores(products_QR, _taken(lengths_N, block), metric)
        for query, scores_R in enumerate(scores_QR):
            if np.isneginf(limits_Q[query]) and k < len(scores_R):
                limits_Q[query] = _limit(scores_R, k) - slack_Q[query]
            places = np.flatnonzero(scores_R >= limits_Q[query])
            if not len(places):
                continue
            kept_Q[query].append((block[places], scores_R[places]))
            if sum(len(rows_kept) for rows_kept, _ in kept_Q[query]) > 2 * k:
                _prune(kept_Q[query], k, limits_Q, query, slack_Q[query])
    return [np.concatenate([rows for rows, _ in kept]) if kept else np.zeros(0, np.int64) for kept in kept_Q]


def _limit(scores_R: Floats, k: int) -> np.float32:
    """Return a number that at least k scores reach: the k-th best maximum of groups, which is found sooner."""
    num_groups = len(scores_R) // GROUP_SCORES
    if num_groups >= 4 * k:
        scores_R = scores_R[: num_groups * GROUP_SCORES].reshape(num_groups, GROUP_SCORES).max(1)
    return kth_best(scores_R, k)


def _prune(kept: list[tuple[Ints, Floats]], k: int, limits_Q: Floats, query: int, slack: np.float32) -> None:
    rows = np.concatenate([rows for rows, _ in kept])
    scores = np.concatenate([scores for _, scores in kept])
    limits_Q[query] = kth_best(scores, k) - slack
    is_kept = scores >= limits_Q[query]
    kept[:] = [(rows[is_kept], scores[is_kept])]


def _taken(array: Array, rows: Ints) -> Floats:
    """Take these rows as float32, without a copy where they follow one another."""
    is_run = int(rows[-1]) - int(rows[0]) + 1 == len(rows)
    return np.asarray(array[rows[0] : rows[-1] + 1] if is_run else array[rows], np.float32)


def rank_scores(products_QR: Vectors, lengths_R: Vectors, metric: str) -> Vectors:
    """Turn inner products, in place, into numbers in the order of the similarity; arrays or tensors."""
    if metric == "cosine":
        products_QR /= lengths_R.clip(1e-12)
    elif metric == "euclidean":
        products_QR *= 2
        products_QR -= lengths_R * lengths_R
    return products_QR


def slack(queries_QD: Floats, lengths_N: Floats, metric: str) -> Floats:
    """Bound the rounding of a score: a part of the largest numbers that are added up for it."""
    if metric == "cosine":
        return np.full(len(queries_QD), MAX_ROUNDING, np.float32)
    longest = lengths_N.max(initial=0)
    lengths_Q = np.linalg.norm(queries_QD, axis=1)
    return MAX_ROUNDING * (lengths_Q * longest if metric == "dot" else (lengths_Q + longest) ** 2)
