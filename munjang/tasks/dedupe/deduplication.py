"""Deduplication: drop texts that say what another says, and give the reason.    N and M rows, D dimension.

>>> from munjang.tasks.dedupe import dedupe
>>> found = dedupe(["It rains.", "it  rains.", "A cat."], threshold=None)
>>> found.kept, found.dropped
([0, 2], [Dropped(index=1, kept=0, score=1.0, reason='equal', is_reference=False)])
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError, unknown
from munjang.tasks.paraphrases import neighbours
from munjang.tasks.paraphrases.neighbours import Graph, TooManyPairs, graph_of, pairs_above
from munjang.tasks.vectors import unit_vectors
from munjang.text.inputs import as_texts, has_texts
from munjang.types import Bools, Floats, Ints

BLOCK_ROWS = 4096  # compared at once where pairs abound: even if all are similar, their pairs take 100 MB
MAX_ROUNDING = 1e-5  # a score may differ by less in another block

Reason = Literal["equal", "similar"]


@dataclass(frozen=True)
class Dropped:
    """A dropped text: the one that stays for it, how similar they are, and why it was dropped.

    `kept` is an index into the texts, or into the reference texts where `is_reference`.
    """

    index: int
    kept: int
    score: float
    reason: Reason
    is_reference: bool


@dataclass(frozen=True)
class Deduplicated:
    """Indices of the texts that stay, in their order, and the dropped texts."""

    kept: list[int]
    dropped: list[Dropped]


# From texts and a graph, where there are any: the order in which rows are kept
Keep = Callable[[Sequence[str] | None, Graph | None, int], Ints]


def normal(text: str) -> str:
    """Remove differences that mean nothing: Unicode forms, case, white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _first(texts: Sequence[str] | None, graph: Graph | None, count: int) -> Ints:
    return np.arange(count)


def _longest(texts: Sequence[str] | None, graph: Graph | None, count: int) -> Ints:
    return np.argsort([-len(text) for text in texts or []], kind="stable")


def _central(texts: Sequence[str] | None, graph: Graph | None, count: int) -> Ints:
    if graph is None:  # equal texts have no centre
        return np.arange(count)
    sums = np.zeros(count)
    np.add.at(sums, np.repeat(np.arange(count), np.diff(graph.starts)), graph.scores_E)
    return np.argsort(-sums, kind="stable")


KEEP: dict[str, Keep] = {"first": _first, "longest": _longest, "central": _central}


def dedupe(
    texts: Any,
    reference: Any = None,
    model: BiEncoder | None = None,
    threshold: float | None = 0.95,
    keep: str = "first",
    vectors: Any = None,
    reference_vectors: Any = None,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> Deduplicated:
    """Drop texts that equal another but for case and white space, or whose cosine with one reaches `threshold`.

    Texts that `reference` (a training set) holds are dropped first. `threshold=None` drops only equal texts. `keep`
    chooses the text of a group that stays: first, longest or central (with the most and nearest neighbours). Every
    dropped text is similar to one that stays, and no two that stay are similar. Ready vectors may be given beside the
    texts or in their place; without texts, all duplicates are similar ones.

    Raises InputError for an unknown `keep` or a threshold that is no cosine.

    >>> dedupe(["A  cat", "a cat", "a dog"], threshold=None).kept
    [0, 2]
    """
    if keep not in KEEP:
        raise unknown("keep", keep, KEEP)
    if threshold is not None and not 0 < threshold <= 1:
        raise InputError(f"threshold is a cosine above 0 and up to 1, or None for equal texts only, not {threshold}.")
    words, vectors = _sides(texts, vectors, "texts")
    known, reference_vectors = _sides([] if reference is None else reference, reference_vectors, "reference")
    if words is None and (keep == "longest" or threshold is None):
        raise InputError("keep='longest' and threshold=None need texts, not only vectors.")
    if threshold is None and (known is None or vectors is not None or reference_vectors is not None):
        raise InputError("threshold=None compares texts only: give the reference as texts, and no vectors.")
    count = len(vectors) if words is None else len(words)
    dropping = _Dropping(count)
    if words is not None:
        _drop_equal(words, known or [], KEEP[keep], dropping)
    if threshold is not None and count:
        left = dropping.left()
        a_ND = _vectors(words, vectors, left, model, "texts", progress)
        if reference is not None or reference_vectors is not None:
            all_known = np.arange(len(reference_vectors) if known is None else len(known))
            b_MD = _vectors(known, reference_vectors, all_known, model, "reference", progress)
            known_pairs = _nearest_above(a_ND, b_MD, threshold, is_exact, device, progress)
            _drop(known_pairs, left, np.arange(len(b_MD)), dropping, is_reference=True)
            stay = dropping.is_left[left]
            left, a_ND = left[stay], np.ascontiguousarray(a_ND[stay])
        some = None if words is None else [words[row] for row in left.tolist()]
        _drop(_similar(a_ND, some, keep, threshold, is_exact, device, progress), left, left, dropping)
    return Deduplicated(dropping.left().tolist(), dropping.resolved())


class _Dropping:
    """Collects the dropped texts."""

    def __init__(self, count: int) -> None:
        self.is_left = np.ones(count, bool)
        self.dropped: list[Dropped] = []

    def left(self) -> Ints:
        return np.flatnonzero(self.is_left)

    def drop(self, index: int, kept: int, score: float, reason: Reason, is_reference: bool = False) -> None:
        self.is_left[index] = False
        self.dropped.append(Dropped(index, kept, score, reason, is_reference))

    def resolved(self) -> list[Dropped]:
        """Return them in the order of the texts; what an equal text was dropped for may have been dropped since."""
        by_index = {each.index: each for each in self.dropped}
        for index, each in by_index.items():
            if not each.is_reference and not self.is_left[each.kept]:
                by_index[index] = replace(by_index[each.kept], index=index)
        return [by_index[index] for index in sorted(by_index)]


def _sides(items: Any, vectors: Any, what: str) -> tuple[list[str] | None, Any]:
    if not has_texts(items):
        if vectors is not None:
            raise InputError(f"The {what} are vectors already; give the texts there, or no vectors beside them.")
        return None, _rows(items, what)
    texts = as_texts(items, what)
    if vectors is not None and len(_rows(vectors, f"vectors of the {what}")) != len(texts):
        raise InputError(f"There are {len(texts)} {what}, but {len(vectors)} vectors of them.")
    return texts, vectors


def _rows(vectors: Any, what: str) -> Any:
    """Refuse vectors that are not a matrix."""
    if np.ndim(vectors) == 0 or (len(vectors) and np.ndim(vectors[0]) != 1):
        raise InputError(f"The {what} should be a matrix, a row for each text, not of shape {np.shape(vectors)}.")
    return vectors


def _vectors(
    texts: Sequence[str] | None, vectors: Any, rows: Ints, model: BiEncoder | None, what: str, progress: bool | None
) -> Floats:
    if vectors is None and texts is not None:
        vectors, rows = [texts[row] for row in rows.tolist()], np.arange(len(rows))
    found = unit_vectors(vectors, model, what, progress)
    return found if len(rows) == len(found) else np.ascontiguousarray(found[rows])


def _drop_equal(texts: Sequence[str], known: Sequence[str], keep: Keep, dropping: _Dropping) -> None:
    known_at = {normal(text): place for place, text in reversed(list(enumerate(known)))}
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        key = normal(text)
        if key in known_at:
            dropping.drop(place, known_at[key], 1.0, "equal", is_reference=True)
        else:
            groups.setdefault(key, []).append(place)
    for places in groups.values():
        if len(places) > 1:
            order = keep([texts[place] for place in places], None, len(places))
            stays = places[int(order[0])]
            for place in places:
                if place != stays:
                    dropping.drop(place, stays, 1.0, "equal")


def _similar(
    vectors_ND: Floats,
    texts: Sequence[str] | None,
    keep: str,
    threshold: float,
    is_exact: bool | None,
    device: str | None,
    progress: bool | None,
) -> tuple[Ints, Ints, Floats]:
    """Choose rows to drop so that no two that stay are similar; return them, the nearest that stays, and the scores."""
    count = len(vectors_ND)
    try:
        graph = graph_of(*pairs_above(vectors_ND, None, threshold, is_exact, device, progress), count)
        return _dropped(graph, KEEP[keep](texts, graph, count))
    except TooManyPairs as error:
        if keep == "central":
            raise InputError(
                f"More than {error.num_pairs:,} pairs score at least {threshold:g}: too many to tell which texts are "
                "central. Keep the first or the longest instead, or raise the threshold."
            ) from None
        return _dropped_in_blocks(vectors_ND, KEEP[keep](texts, None, count), threshold, device, progress)


def _drop(
    pairs: tuple[Ints, Ints, Floats], rows_of: Ints, kept_of: Ints, dropping: _Dropping, is_reference: bool = False
) -> None:
    """Drop the rows of these pairs for the rows beside them."""
    for row, column, score in zip(*(side.tolist() for side in pairs), strict=True):
        dropping.drop(int(rows_of[row]), int(kept_of[column]), score, "similar", is_reference)


def _nearest_above(
    a_ND: Floats,
    b_MD: Floats,
    threshold: float,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> tuple[Ints, Ints, Floats]:
    """Find rows of `a` that reach the threshold with a row of `b`; return them, the nearest of `b`, and scores."""
    find = partial(pairs_above, threshold=threshold, is_exact=is_exact, device=device, progress=progress)
    try:
        return _best(*find(a_ND, b_MD))
    except TooManyPairs:
        block_rows = max(neighbours.MAX_EDGES // 2 // len(b_MD), 1)
        blocks = []
        for start in range(0, len(a_ND), block_rows):
            rows, columns, scores = _best(*find(a_ND[start : start + block_rows], b_MD))
            blocks.append((rows + start, columns, scores))
        rows, columns, scores = (np.concatenate(side) for side in zip(*blocks, strict=True))
        return rows, columns, scores


def _dropped(graph: Graph, order: Ints) -> tuple[Ints, Ints, Floats]:
    """Keep rows in this order and drop their neighbours; return those, the nearest that stays, and scores."""
    stays = _stays(graph, order)
    gone = np.flatnonzero(~stays)
    at = np.array([graph.starts[row] + np.flatnonzero(stays[graph.of(row)])[0] for row in gone.tolist()], np.int64)
    return gone, graph.neighbours_E[at], graph.scores_E[at]  # best first


def _dropped_in_blocks(
    vectors_ND: Floats, order: Ints, threshold: float, device: str | None = None, progress: bool | None = None
) -> tuple[Ints, Ints, Floats]:
    """Do as `_dropped` without the whole graph: compare each block with what stays of those before it."""
    stays = np.zeros(len(vectors_ND), bool)
    for start in range(0, len(order), BLOCK_ROWS):
        rows = order[start : start + BLOCK_ROWS]
        near = _nearest_above(vectors_ND[rows], vectors_ND[stays], threshold, True, device, progress)[0]
        rows = np.delete(rows, near)
        pairs = pairs_above(vectors_ND[rows], None, threshold, True, device, progress)
        stays[rows[_stays(graph_of(*pairs, len(rows)), np.arange(len(rows)))]] = True
    gone, kept = np.flatnonzero(~stays), np.flatnonzero(stays)
    rows, columns, scores = _nearest_above(
        vectors_ND[gone], vectors_ND[kept], threshold - MAX_ROUNDING, True, device, progress
    )
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
