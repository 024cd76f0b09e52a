"""Similar pairs of which there are too many to hold: in blocks, and only with what stays.    N and M rows, D width."""

from functools import partial

import numpy as np

from munjang.tasks.paraphrases import neighbours
from munjang.tasks.paraphrases.neighbours import Graph, TooManyPairs, graph_of, pairs_above
from munjang.types import Bools, Floats, Ints

BLOCK = 4096  # rows: even if all are similar, their pairs are 100 MB
SLACK = 1e-5  # a score may differ by less in another block


def nearest_above(
    a_ND: Floats,
    b_MD: Floats,
    threshold: float,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> tuple[Ints, Ints, Floats]:
    """For each row of `a` that scores at least the threshold with one of `b`: itself, the nearest, and the score."""
    find = partial(pairs_above, threshold=threshold, is_exact=is_exact, device=device, progress=progress)
    try:
        return _best(*find(a_ND, b_MD))
    except TooManyPairs:
        size = max(neighbours.MAX_EDGES // 2 // len(b_MD), 1)
        parts = []
        for start in range(0, len(a_ND), size):
            rows, columns, scores = _best(*find(a_ND[start : start + size], b_MD))
            parts.append((rows + start, columns, scores))
        rows, columns, scores = (np.concatenate(side) for side in zip(*parts, strict=True))
        return rows, columns, scores


def dropped_of(graph: Graph, order: Ints) -> tuple[Ints, Ints, Floats]:
    """In this order keep a row and drop its neighbours; each that is dropped with the nearest one that stays."""
    stays = _stays(graph, order)
    gone = np.flatnonzero(~stays)
    at = np.array([graph.starts[row] + np.flatnonzero(stays[graph.of(row)])[0] for row in gone.tolist()], np.int64)
    return gone, graph.neighbours_E[at], graph.scores_E[at]  # best first


def dropped_of_crowd(
    vectors_ND: Floats, order: Ints, threshold: float, device: str | None = None, progress: bool | None = None
) -> tuple[Ints, Ints, Floats]:
    """`dropped_of` without the whole graph: block by block, each compared with what stays of those before it."""
    stays = np.zeros(len(vectors_ND), bool)
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        near = nearest_above(vectors_ND[rows], vectors_ND[stays], threshold, True, device, progress)[0]
        rows = np.delete(rows, near)
        pairs = pairs_above(vectors_ND[rows], None, threshold, True, device, progress)
        stays[rows[_stays(graph_of(*pairs, len(rows)), np.arange(len(rows)))]] = True
    gone, kept = np.flatnonzero(~stays), np.flatnonzero(stays)
    rows, columns, scores = nearest_above(vectors_ND[gone], vectors_ND[kept], threshold - SLACK, True, device, progress)
    return gone[rows], kept[columns], scores


def _stays(graph: Graph, order: Ints) -> Bools:
    is_open, stays = np.ones(len(graph), bool), np.zeros(len(graph), bool)
    for row in order.tolist():
        if is_open[row]:
            stays[row] = True
            is_open[row] = False
            is_open[graph.of(row)] = False
    return stays


def _best(rows: Ints, columns: Ints, scores: Floats) -> tuple[Ints, Ints, Floats]:
    order = np.lexsort((columns, -scores, rows))
    first = order[np.unique(rows[order], return_index=True)[1]]
    return rows[first], columns[first], scores[first]
