"""Keep the best pairs as they come; the floor rises as the store fills.    P pairs."""

import numpy as np

from munjang.types import Bools, Floats, Ints
from munjang.vectors.nearest import kth_best

NO_PAIRS = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


class Best:
    """Keeps at least the `max_pairs` best of the added pairs; none below `floor` is needed any more.

    `max_neighbours`: a pair counts only if it is among so many of the best of one of its rows.
    """

    def __init__(self, max_pairs: int, floor: float, max_neighbours: int | None, is_self: bool) -> None:
        self.max_pairs, self.floor, self.max_neighbours, self.is_self = max_pairs, floor, max_neighbours, is_self
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._num_held = 0
        self._limit = 2 * max_pairs + 100_000

    def add(self, rows_P: Ints, columns_P: Ints, scores_P: Floats) -> None:
        """Add pairs; when too many are held, drop the worst and raise the floor."""
        if len(rows_P):
            is_kept = scores_P >= self.floor  # it may have risen since they were looked for
            self._parts.append((rows_P[is_kept], columns_P[is_kept], scores_P[is_kept]))
            self._num_held += int(is_kept.sum())
        if self._num_held > self._limit:
            held = self._raise_floor() if self.max_neighbours is None else self._raise_floor_of_near()
            self._parts, self._num_held = [held], len(held[0])
            self._limit = 2 * max(self.max_pairs, self._num_held) + 100_000

    def found(self) -> tuple[Ints, Ints, Floats]:
        """Return the best pairs so far, best first; of equal ones the first rows."""
        rows, columns, scores = self._held()
        if self.max_neighbours is not None:
            is_near = self._near(rows, columns, scores).any(0)
            rows, columns, scores = rows[is_near], columns[is_near], scores[is_near]
        if len(scores) > self.max_pairs:  # sorting all would take longer
            limit = kth_best(scores, self.max_pairs)
            is_kept = scores >= limit
            rows, columns, scores = rows[is_kept], columns[is_kept], scores[is_kept]
        order = np.lexsort((columns, rows, -scores))[: self.max_pairs]
        return rows[order], columns[order], scores[order]

    def _held(self) -> tuple[Ints, Ints, Floats]:
        rows, columns, scores = (np.concatenate(side) for side in zip(NO_PAIRS, *self._parts, strict=True))
        return rows, columns, scores

    def _raise_floor(self) -> tuple[Ints, Ints, Floats]:
        held = self.found()
        if len(held[2]) == self.max_pairs:
            self.floor = _above(held[2][-1])
        return held

    def _raise_floor_of_near(self) -> tuple[Ints, Ints, Floats]:
        """Raise the floor where pairs must be among the best of their rows.

        A better pair may push two that are held out of their rows' best, so their number says nothing.

        But the places among the best of a row, once filled, stay filled with scores as good, and a pair fills two at
        most: as many pairs as half of the filled places will be left.
        """
        rows, columns, scores = self._held()
        is_near_2P = self._near(rows, columns, scores)
        filled = np.broadcast_to(scores, is_near_2P.shape)[is_near_2P]
        is_kept = is_near_2P.any(0)
        count = 2 * self.max_pairs
        if len(filled) >= count:
            limit = kth_best(filled, count)
            is_kept &= scores >= limit
            self.floor = _above(limit)
        return rows[is_kept], columns[is_kept], scores[is_kept]

    def _near(self, rows: Ints, columns: Ints, scores: Floats) -> Bools:
        """Tell whether each pair is among the best of its row, and of its column; it stays so while worse ones go."""
        assert self.max_neighbours is not None
        if self.is_self:
            ends, others = np.concatenate([rows, columns]), np.concatenate([columns, rows])
            return (_rank(ends, others, np.tile(scores, 2)) < self.max_neighbours).reshape(2, -1)
        ranks_2P = np.stack([_rank(rows, columns, scores), _rank(columns, rows, scores)])
        return ranks_2P < self.max_neighbours


def _above(score: np.floating) -> float:
    """Return the next floor: a pair of equal score would not be better than those there are."""
    return float(np.nextafter(score, np.float32(np.inf)))


def _rank(ends_P: Ints, others_P: Ints, scores_P: Floats) -> Ints:
    """Rank each pair among those with the same end, by score, then by the other end."""
    order = np.lexsort((others_P, -scores_P, ends_P))
    ordered = ends_P[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return ranks
