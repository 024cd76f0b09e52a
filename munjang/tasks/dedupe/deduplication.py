"""Deduplication: texts that say what another says, dropped with the reason.    N rows, D width.

>>> from munjang.tasks.dedupe import dedupe
>>> found = dedupe(["It rains.", "it  rains.", "A cat."], threshold=None)
>>> found.kept, found.dropped
([0, 2], [Dropped(index=1, kept=0, score=1.0, reason='equal', is_reference=False)])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError, unknown
from munjang.tasks.dedupe.crowds import dropped_of, dropped_of_crowd, nearest_above
from munjang.tasks.dedupe.keeping import KEEP, Keep, normal
from munjang.tasks.paraphrases.neighbours import TooManyPairs, graph_of, pairs_above
from munjang.tasks.vectors import unit_vectors
from munjang.text.inputs import as_texts, has_texts
from munjang.types import Floats, Ints

Reason = Literal["equal", "similar"]


@dataclass(frozen=True)
class Dropped:
    """A text that was dropped: for which one that stays, how similar they are, and why.

    `kept` is a place among the texts, or among the reference texts where `is_reference`.
    """

    index: int
    kept: int
    score: float
    reason: Reason
    is_reference: bool


@dataclass(frozen=True)
class Deduplicated:
    """Places that stay, in their order, and what was dropped."""

    kept: list[int]
    dropped: list[Dropped]


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

    With `reference` (a training set) what it holds already is dropped first. `threshold=None`: only equal ones. `keep`
    says which of a group stays: first, longest or central (that with the most and nearest neighbours). Every text that
    is dropped is similar to one that stays, and no two that stay are. Ready vectors may be given beside the texts, or
    in their place; without texts, all duplicates are similar ones.
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
    found = _Found(count)
    if words is not None:
        _drop_equal(words, known or [], KEEP[keep], found)
    if threshold is not None and count:
        left = found.left()
        a_ND = _vectors(words, vectors, left, model, "texts", progress)
        if reference is not None or reference_vectors is not None:
            all_known = np.arange(len(reference_vectors) if known is None else len(known))
            b_MD = _vectors(known, reference_vectors, all_known, model, "reference", progress)
            known_pairs = nearest_above(a_ND, b_MD, threshold, is_exact, device, progress)
            _drop(known_pairs, left, np.arange(len(b_MD)), found, is_reference=True)
            stay = found.is_left[left]
            left, a_ND = left[stay], np.ascontiguousarray(a_ND[stay])
        some = None if words is None else [words[row] for row in left.tolist()]
        _drop(_similar(a_ND, some, keep, threshold, is_exact, device, progress), left, left, found)
    return Deduplicated(found.left().tolist(), found.resolved())


class _Found:
    """What was dropped so far."""

    def __init__(self, count: int) -> None:
        self.is_left = np.ones(count, bool)
        self.dropped: list[Dropped] = []

    def left(self) -> Ints:
        return np.flatnonzero(self.is_left)

    def drop(self, index: int, kept: int, score: float, reason: Reason, is_reference: bool = False) -> None:
        self.is_left[index] = False
        self.dropped.append(Dropped(index, kept, score, reason, is_reference))

    def resolved(self) -> list[Dropped]:
        """In the order of the texts, each with one that stays: what an equal one stayed for may have gone since."""
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
    """Vectors that are a matrix, whose length is a number of rows."""
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


def _drop_equal(texts: Sequence[str], known: Sequence[str], keep: Keep, found: _Found) -> None:
    known_at = {normal(text): place for place, text in reversed(list(enumerate(known)))}
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        key = normal(text)
        if key in known_at:
            found.drop(place, known_at[key], 1.0, "equal", is_reference=True)
        else:
            groups.setdefault(key, []).append(place)
    for places in groups.values():
        if len(places) > 1:
            order = keep([texts[place] for place in places], None, len(places))
            stays = places[int(order[0])]
            for place in places:
                if place != stays:
                    found.drop(place, stays, 1.0, "equal")


def _similar(
    vectors_ND: Floats,
    texts: Sequence[str] | None,
    keep: str,
    threshold: float,
    is_exact: bool | None,
    device: str | None,
    progress: bool | None,
) -> tuple[Ints, Ints, Floats]:
    """Rows to drop so that no two that stay are similar, the nearest that stays of each, and how similar they are."""
    count = len(vectors_ND)
    try:
        graph = graph_of(*pairs_above(vectors_ND, None, threshold, is_exact, device, progress), count)
        return dropped_of(graph, KEEP[keep](texts, graph, count))
    except TooManyPairs as error:
        if keep == "central":
            raise InputError(
                f"More than {error.num_pairs:,} pairs score at least {threshold:g}: too many to tell which texts are "
                "central. Keep the first or the longest instead, or raise the threshold."
            ) from None
        return dropped_of_crowd(vectors_ND, KEEP[keep](texts, None, count), threshold, device, progress)


def _drop(
    pairs: tuple[Ints, Ints, Floats], rows_of: Ints, kept_of: Ints, found: _Found, is_reference: bool = False
) -> None:
    """Drop what is similar to one that stays, for the nearest of them."""
    for row, column, score in zip(*(side.tolist() for side in pairs), strict=True):
        found.drop(int(rows_of[row]), int(kept_of[column]), score, "similar", is_reference)
