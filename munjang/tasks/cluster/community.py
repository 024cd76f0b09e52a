"""Fast communities: groups of texts near a common one, from the graph of neighbours.    N rows, D dimension.

The groups are those of sentence-transformers' `community_detection`: every text with enough neighbours above the
threshold proposes itself and them as a group, and of groups that overlap the larger one takes the shared texts. There
each proposal costs a sorted row of all scores; here only the pairs above the threshold are ever found and held.
"""

from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.tasks.paraphrases.neighbours import Graph, neighbours
from munjang.tasks.vectors import unit_vectors
from munjang.types import Bools


def communities(
    texts: Any,
    model: BiEncoder | None = None,
    threshold: float = 0.75,
    min_size: int = 10,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> list[list[int]]:
    """Find groups of at least `min_size` texts, the largest first: the centre's index, then those of the nearest to it.

    All of a group have a cosine of at least `threshold` with the centre. Texts in no group are in none of the lists.

    Raises InputError for a min_size below 1.

    >>> [sorted(each) for each in communities(["A cat sleeps.", "A kitten naps.", "Shares fell."], min_size=2)]
    [[0, 1]]
    """
    if min_size < 1:
        raise InputError(f"min_size must be at least 1, not {min_size}.")
    vectors_ND = unit_vectors(texts, model, "texts", progress)
    graph = neighbours(vectors_ND, threshold, is_exact, device, progress)
    # a vector is its own neighbour, but for the zero vector, which is close to nothing
    is_own_N = np.einsum("nd,nd->n", vectors_ND, vectors_ND) >= min(threshold, 0.5)
    return communities_of(graph, min_size, is_own_N)


def communities_of(graph: Graph, min_size: int, is_own_N: Bools | None = None) -> list[list[int]]:
    """Find the communities of a graph of neighbours."""
    sizes_N = np.diff(graph.starts) + (1 if is_own_N is None else is_own_N)
    centres = np.flatnonzero(sizes_N >= min_size)
    is_taken = np.zeros(len(graph), bool)
    found: list[list[int]] = []
    for centre in centres[np.argsort(-sizes_N[centres], kind="stable")].tolist():
        if is_taken[centre]:
            continue
        near = graph.of(centre)
        free = near[~is_taken[near]]
        if len(free) + int(is_own_N is None or is_own_N[centre]) >= min_size:
            found.append([centre, *free.tolist()])
            is_taken[found[-1]] = True
    return sorted(found, key=len, reverse=True)
