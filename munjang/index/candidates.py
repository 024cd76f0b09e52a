"""Candidates: passages that a search retrieved, before it is finished; and what was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict

import numpy as np

from munjang.errors import InputError, unknown
from munjang.index.fusion import FUSIONS, Fused, fuse
from munjang.index.ways import weights_of
from munjang.stores.base import Found, Rows, Store
from munjang.stores.filters import Filter, matches
from munjang.text.highlights import Highlighter
from munjang.text.inputs import as_texts
from munjang.types import Hit
from munjang.vectors.diversity import marginal

GROUPS = ("document", "passage")


class RetrieveOptions(TypedDict, total=False):
    """Options of `retrieve` beside how many candidates and which."""

    group: Literal["document", "passage"] | str  # the names for editors to complete
    by: str | Sequence[str] | None
    weights: Mapping[str, float] | None
    fusion: Literal["scores", "ranks"] | str
    diversity: float
    min_score: float | None
    around: int | Literal["document"] | str


@dataclass(frozen=True)
class Request:
    """The request of a search, checked."""

    k: int = 10
    candidates: int = 100
    where: str | None = None
    group: str = "document"
    by: str | Sequence[str] | None = None
    weights: Mapping[str, float] | None = None
    fusion: str = "scores"
    diversity: float = 0.0
    min_score: float | None = None
    around: int | str = 0  # passages on either side of a hit's own, which are joined to its text

    def __post_init__(self) -> None:
        if not all(isinstance(number, int | np.integer) and number >= 1 for number in (self.k, self.candidates)):
            raise InputError(f"k and candidates must be whole numbers from 1, not {self.k!r} and {self.candidates!r}.")
        if self.group not in GROUPS:
            raise InputError(f"Unknown group {self.group!r}; choose from {', '.join(GROUPS)}.")
        if self.fusion not in FUSIONS:
            raise unknown("fusion", self.fusion, list(FUSIONS))
        if not 0 <= self.diversity <= 1:
            raise InputError(f"diversity must be from 0 (off) to 1 (unlike each other), not {self.diversity}.")
        if self.min_score is not None and not 0 <= self.min_score <= 1:
            raise InputError(f"min_score is a relevance from 0 to 1, not {self.min_score}.")
        if self.min_score is not None and not self.is_dense:
            raise InputError("min_score needs the similarity of vectors: search by dense too.")

        is_number = isinstance(self.around, int | np.integer) and not isinstance(self.around, bool)
        if self.around != "document" and not (is_number and int(self.around) >= 0):
            raise InputError(f"around is a number of passages from 0, or 'document', not {self.around!r}.")

    @property
    def is_dense(self) -> bool:
        """Tell whether vectors are searched by."""
        return self.by is None or "dense" in ([self.by] if isinstance(self.by, str) else self.by)


@dataclass(frozen=True)
class Candidates:
    """The result of `Index.retrieve`, which `Index.finish` takes: the hits of each query and what was asked for."""

    hits: list[list[Hit]]
    queries: list[str] | None  # None: vectors were given
    is_single: bool  # one query, not a list
    request: Request


def hit_of(rows: Rows, row: int, place: int, fused: Fused) -> Hit:
    """Return a hit of a stored row."""
    return Hit(
        place,
        rows.texts[row],
        fused.score,
        id=rows.ids[row],
        document_id=rows.document_ids[row],
        start=rows.starts[row],
        end=rows.ends[row],
        metadata=rows.metadata[row],
        retrieval_score=fused.score,
        ranks=fused.ranks,
        scores=fused.scores,
    )


def fused_hits(
    store: Store, found: Mapping[str, list[Found]], queries: list[str] | None, request: Request
) -> list[list[Hit]]:
    """Fuse what each way found, query by query, and read the best rows."""
    ids = dict.fromkeys(id for orders in found.values() for order in orders for id in order.ids)
    rows = store.get(list(ids))
    row_of = {id: row for row, id in enumerate(rows.ids)}  # one that was deleted meanwhile is not there
    is_grouped = request.group == "document"
    group_of = dict(zip(rows.ids, rows.document_ids if is_grouped else rows.ids, strict=True))
    hits = []
    for at, orders in enumerate(zip(*found.values(), strict=True)):
        weights = weights_of("" if queries is None else queries[at], list(found), request.weights)
        fused = fuse(dict(zip(found, orders, strict=True)), weights, request.fusion, group_of)
        best = fused[: max(request.candidates, request.k)]
        hits.append([hit_of(rows, row_of[each.id], place, each) for place, each in enumerate(best)])
    return hits


def as_queries(query: Any) -> tuple[list[str] | None, bool]:
    """Return the texts to search for, None where vectors were given, and whether it is one query alone."""
    if isinstance(query, str):
        return [query], True
    if isinstance(query, (list, tuple)) and (not query or isinstance(query[0], str)):
        return as_texts(list(query), "queries"), False
    return None, np.ndim(query) == 1


def one_per_document(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the best passage of every document, in order."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.document_id, hit)
    return list(best.values())


def highlighted(hits: Sequence[Hit], words: Highlighter) -> list[Hit]:
    """Say where the words of the query stand in each hit."""
    return [replace(hit, highlights=tuple(words.places(hit.text))) for hit in hits]


def widened(store: Store, hits: Sequence[Hit], around: int | str, where: Filter | None) -> list[Hit]:
    """Join the passages around a hit's own that fit the filter to its text; `start` and `end` say where that stands."""
    ids_of = store.passages(list(dict.fromkeys(hit.document_id for hit in hits)))
    wanted: list[list[str]] = []
    for hit in hits:
        ids = ids_of.get(hit.document_id, [])
        place = ids.index(hit.id) if hit.id in ids else 0
        reach = len(ids) if around == "document" else int(around)
        wanted.append(ids[max(0, place - reach) : place + reach + 1] or [hit.id])
    rows = store.get(list(dict.fromkeys(id for ids in wanted for id in ids)))
    columns = zip(rows.ids, rows.document_ids, rows.texts, rows.metadata, strict=True)
    row_of = {
        id: row
        for row, (id, document_id, text, metadata) in enumerate(columns)
        if where is None or matches(where, {**metadata, "id": id, "document_id": document_id, "text": text})
    }
    places = [[row_of[id] for id in ids if id in row_of] for ids in wanted]
    return [_joined(hit, rows, own) for hit, own in zip(hits, places, strict=True)]


def _joined(hit: Hit, rows: Rows, places: Sequence[int]) -> Hit:
    """Return a hit with the text of neighbouring rows, which may overlap; what no row has was white space."""
    text, end = "", rows.starts[places[0]] if places else 0
    begin = end
    for row in places:
        text += "\n" * min(1, rows.starts[row] - end) if rows.starts[row] > end else ""
        text += rows.texts[row][max(0, end - rows.starts[row]) :]
        end = max(end, rows.ends[row])
    if not places:
        return hit
    behind = text.find(hit.text)
    moved = tuple((start + behind, stop + behind) for start, stop in hit.highlights) if behind >= 0 else ()
    return replace(hit, text=text, start=begin, end=end, highlights=moved)


def diverse(store: Store, hits: Sequence[Hit], request: Request) -> list[Hit]:
    """Choose hits that score high and are unlike each other."""
    rows = store.get([hit.id for hit in hits], with_vectors=True)
    full = rows.vectors if rows.full_vectors is None else rows.full_vectors
    vector_of = {} if full is None else dict(zip(rows.ids, np.asarray(full, np.float32), strict=True))
    kept = [hit for hit in hits if hit.id in vector_of]  # one that was deleted meanwhile is not there
    if not kept:
        return []
    units = np.array([vector_of[hit.id] for hit in kept])
    units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    scores = np.array([hit.score for hit in kept], np.float32)
    span = np.ptp(scores)
    scores = (scores - scores.min()) / span if span > 0 else scores  # as cosines: 0 to 1
    return [kept[place] for place in marginal(scores, units, request.k, request.diversity)]
