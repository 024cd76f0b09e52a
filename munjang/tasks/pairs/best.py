"""The best pairs of all, kept while they come: the floor rises as the store fills.    P pairs."""

import numpy as np

from munjang.types import Bools, Floats, Ints

NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


class Best:
    """At least the `max_pairs` best pairs that were added; below `floor` none is needed any more.

    `max_neighbours`: a pair counts only if it is among so many of the best of one of its rows.
    """

    def __init__(self, max_pairs: int, floor: float, max_neighbours: int | None, is_self: bool) -> None:
        self.max_pairs, self.floor, self.max_neighbours, self.is_self = max_pairs, floor, max_neighbours, is_self
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._num_held = 0
        self._limit = 2 * max_pairs + 100_000

    def add(self, rows_P: Ints, columns_P: Ints, scores_P: Floats) -> None:
        """Take some pairs; when too many are held, the worst go and the floor rises."""
        if len(rows_P):
            is_kept = scores_P >= self.floor  # it may have risen since they were looked for
            self._parts.append((rows_P[is_kept], columns_P[is_kept], scores_P[is_kept]))
            self._num_held += int(is_kept.sum())
        if self._num_held > self._limit:
            rows, columns, scores = self.found()
            if len(scores) == self.max_pairs:
                # one of equal score would not be better than what there is
                self.floor = float(np.nextafter(scores[-1], np.float32(np.inf)))
            self._parts, self._num_held = [(rows, columns, scores)], len(rows)
            self._limit = 2 * max(self.max_pairs, self._num_held) + 100_000

    def found(self) -> tuple[Ints, Ints, Floats]:
        """The best pairs so far, best first; of equal ones the first rows."""
        rows, columns, scores = (np.concatenate(side) for side in zip(NONE, *self._parts, strict=True))
        if self.max_neighbours is not None:
            is_near = self._near(rows, columns, scores)
            rows, columns, scores = rows[is_near], columns[is_near], scores[is_near]
        if len(scores) > self.max_pairs:  # sorting all would take longer
            limit = np.partition(scores, len(scores) - self.max_pairs)[-self.max_pairs]
            is_kept = scores >= limit
            rows, columns, scores = rows[is_kept], columns[is_kept], scores[is_kept]
        order = np.lexsort((columns, rows, -scores))[: self.max_pairs]
        return rows[order], columns[order], scores[order]

    def _near(self, rows: Ints, columns: Ints, scores: Floats) -> Bools:
        """Which pairs are among the best of one of their rows. Those that are stay so while worse ones go."""
        assert self.max_neighbours is not None
        if self.is_self:
            ends, others = np.concatenate([rows, columns]), np.concatenate([columns, rows])
            is_near = _rank(ends, others, np.tile(scores, 2)) < self.max_neighbours
            return is_near[: len(rows)] | is_near[len(rows) :]
        is_near = _rank(rows, columns, scores) < self.max_neighbours
        return is_near | (_rank(columns, rows, scores) < self.max_neighbours)


def _rank(ends_P: Ints, others_P: Ints, scores_P: Floats) -> Ints:
    """The place of each pair among those with the same end, by score, then by the other end."""
    order = np.lexsort((others_P, -scores_P, ends_P))
    ordered = ends_P[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return ranks
