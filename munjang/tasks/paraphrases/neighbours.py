"""The graph of neighbours: which rows score at least a threshold with each other.    N rows, E edges, D dimension."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from munjang.engine.devices import pick_device
from munjang.errors import InputError
from munjang.tasks.paraphrases.mining import prepared
from munjang.tasks.paraphrases.scan import scan
from munjang.types import Floats, Ints
from munjang.vectors.similarity import check_same_dimension

MAX_EDGES = 1 << 28  # 12 bytes each, and as much again while they are sorted
MAX_ROUNDING = 1e-6  # the cosine of equal vectors may come out as 0.9999999: at 1.0 they are neighbours all the same


class TooManyPairs(InputError):
    """More pairs reach the threshold than can be held."""

    def __init__(self, num_pairs: int, threshold: float) -> None:
        self.num_pairs = num_pairs
        super().__init__(
            f"More than {num_pairs:,} pairs score at least {threshold:g}: too many to hold. "
            "Raise the threshold, or drop duplicates first (munjang dedupe)."
        )


@dataclass(frozen=True)
class Graph:
    """For each row its neighbours, best first; those of row `n` lie from `starts[n]` to `starts[n + 1]`."""

    starts: Ints  # N + 1
    neighbours_E: Ints
    scores_E: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, row: int) -> Ints:
        """Return the neighbours of a row, without itself."""
        return self.neighbours_E[self.starts[row] : self.starts[row + 1]]

    def scores_of(self, row: int) -> Floats:
        """Return the scores of a row's neighbours."""
        return self.scores_E[self.starts[row] : self.starts[row + 1]]


class _All:
    """Keeps every pair above a fixed floor."""

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.num_pairs = 0
        self.parts: list[tuple[Ints, Ints, Floats]] = []

    def add(self, rows_P: Ints, columns_P: Ints, scores_P: Floats) -> None:
        self.num_pairs += len(rows_P)
        if 2 * self.num_pairs > MAX_EDGES:
            raise TooManyPairs(self.num_pairs, self.floor + MAX_ROUNDING)
        # 4 bytes are enough for a row, and there may be many
        self.parts.append((rows_P.astype(np.int32), columns_P.astype(np.int32), scores_P))


def pairs_above(
    a_ND: Floats,
    b_MD: Floats | None,
    threshold: float,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> tuple[Ints, Ints, Floats]:
    """Find every pair of rows, in one set or between two, whose inner product reaches the threshold, in no order."""
    if not math.isfinite(threshold):
        raise InputError(f"The threshold must be a number, not {threshold}.")
    found, where = _All(threshold - MAX_ROUNDING), pick_device(device)
    if len(a_ND) and (b_MD is None or len(b_MD)):
        check_same_dimension(a_ND, b_MD)
        a = torch.from_numpy(a_ND).to(where)
        b = a if b_MD is None else torch.from_numpy(b_MD).to(where)
        scan(a, b, *prepared(a, b, found.floor, is_exact), found, progress)
    none = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    rows, columns, scores = (np.concatenate(side) for side in zip(none, *found.parts, strict=True))
    return rows, columns, scores


def graph_of(rows: Ints, columns: Ints, scores: Floats, num_rows: int) -> Graph:
    """Build the graph of one set's pairs, seen from both of their ends."""
    ends = np.concatenate([rows, columns])
    others = np.concatenate([columns, rows])
    both = np.concatenate([scores, scores])
    order = np.lexsort((others, -both, ends))
    starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=num_rows))])
    return Graph(starts, others[order], both[order])


def neighbours(
    vectors_ND: Floats,
    threshold: float,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> Graph:
    """Find the neighbours of each row: all others whose inner product with it is at least the threshold."""
    return graph_of(*pairs_above(vectors_ND, None, threshold, is_exact, device, progress), len(vectors_ND))


def components(graph: Graph) -> Ints:
    """Number the connected components, in the order of their first rows, and return that of each row."""
    ends = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    label = np.arange(len(graph))
    while True:
        least = label.copy()
        np.minimum.at(least, ends, label[graph.neighbours_E])  # the least label among the neighbours
        while (least[least] != least).any():  # and what that one has become itself
            least = least[least]
        if (least == label).all():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = least
