"""Items to recommend: in memory, or the documents of an index.    N items, D dimension, L likes, P candidates."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.index import Index
from munjang.stores.base import Rows
from munjang.text.inputs import as_texts
from munjang.types import Doubles, Floats
from munjang.vectors.nearest import top_k
from munjang.vectors.similarity import check_dimension, check_vectors, unit

# How relevant each of many vectors is: [N, D] -> [N]
Relevance = Callable[[Floats], Doubles]


@dataclass(frozen=True)
class Candidates:
    """Items that may be recommended, with unit vectors; an id may occur twice, once for each of its passages."""

    ids: Sequence[str]
    vectors_PD: Floats
    texts: Sequence[str]


class Catalogue(Protocol):
    """The source of items."""

    @property
    def model(self) -> BiEncoder | None:
        """The model that made the vectors; None where it is not known."""

    def vectors(self, ids: Sequence[str]) -> Floats:
        """Return the unit vectors of these items; an unknown id is an InputError."""

    def candidates(self, wanted_LD: Floats, relevance: Relevance, number: int) -> Candidates:
        """Return so many of the most relevant items, or a few more."""


@dataclass(frozen=True)
class Items:
    """Items in memory. All of them are looked at.

    Make them with `of_texts` or `of_vectors`.

    >>> len(Items.of_vectors([[1.0, 0.0], [0.0, 1.0]], ids=["a", "b"]).ids)
    2
    """

    ids: Sequence[str]
    vectors_ND: Floats
    texts: Sequence[str]
    model: BiEncoder | None = None

    @classmethod
    def of_texts(
        cls, texts: Any, model: BiEncoder, ids: Iterable[Any] | None = None, progress: bool | None = None
    ) -> "Items":
        """Make items of texts; ids None numbers them from "0".

        Raises InputError for no texts, ids that are not one for each, or an id given twice.

        >>> Items.of_texts(["A cat sleeps."], BiEncoder.load(), ids=["a"]).vectors(["a"]).shape
        (1, 384)
        """
        rows = as_texts(texts)
        return cls.of_vectors(model.encode_document(rows, progress=progress), ids, rows, model)

    @classmethod
    def of_vectors(
        cls,
        vectors: Any,
        ids: Iterable[Any] | None = None,
        texts: Sequence[str] | None = None,
        model: BiEncoder | None = None,
    ) -> "Items":
        """Make items of ready vectors; needs in words need the `model`.

        Raises InputError for no vectors, ids that are not one for each, or an id given twice.

        >>> Items.of_vectors([[1.0, 0.0], [0.0, 1.0]], ids=["a", "b"]).vectors(["b"]).tolist()
        [[0.0, 1.0]]
        """
        vectors_ND = check_vectors(vectors, "items")
        names = [str(place) for place in range(len(vectors_ND))] if ids is None else [str(id) for id in ids]
        if not len(vectors_ND):
            raise InputError("There are no items; give at least one.")
        if len(names) != len(vectors_ND) or (texts is not None and len(texts) != len(names)):
            raise InputError(f"{len(vectors_ND)} vectors, {len(names)} ids, {len(texts or names)} texts: one of each.")
        if len(set(names)) < len(names):
            ((twice, _),) = Counter(names).most_common(1)
            raise InputError(f"The id {twice!r} occurs twice; every item needs its own.")
        if model is not None:
            check_dimension(vectors_ND, model.dimension, "items")
        return cls(names, unit(vectors_ND), texts or [""] * len(names), model)

    def vectors(self, ids: Sequence[str]) -> Floats:
        """Return the unit vectors of these items.

        Raises InputError for an id that is not among the items.

        >>> Items.of_vectors([[2.0, 0.0], [0.0, 1.0]], ids=["a", "b"]).vectors(["a"]).tolist()
        [[1.0, 0.0]]
        """
        place = {id: row for row, id in enumerate(self.ids)}
        for id in ids:
            if id not in place:
                raise unknown_item(id, get_close_matches(id, self.ids, n=1))
        return self.vectors_ND[[place[id] for id in ids]]

    def candidates(self, wanted_LD: Floats, relevance: Relevance, number: int) -> Candidates:
        """Return the most relevant items, exactly.

        >>> items = Items.of_vectors([[1.0, 0.0], [0.0, 1.0]], ids=["a", "b"])
        >>> items.candidates(items.vectors(["b"]), lambda units: units[:, 1], number=1).ids
        ['b']
        """
        rows = top_k(relevance(self.vectors_ND), number).tolist()
        return Candidates([self.ids[row] for row in rows], self.vectors_ND[rows], [self.texts[row] for row in rows])


@dataclass(frozen=True)
class IndexItems:
    """The documents of an index. What its engine finds near to any of the likes is looked at."""

    index: Index

    @property
    def model(self) -> BiEncoder | None:
        """The index's own."""
        return self.index.model

    def vectors(self, ids: Sequence[str]) -> Floats:
        """Return the mean direction of each document's passages."""
        passages = self.index.store.passages(ids)
        found = []
        for id in ids:
            if not passages.get(id):
                raise unknown_item(id, [])
            found.append(_full(self.index.store.get(passages[id], with_vectors=True)).mean(0))
        return unit(np.stack(found))

    def candidates(self, wanted_LD: Floats, relevance: Relevance, number: int) -> Candidates:
        """Find passages near to any of the likes."""
        hits = self.index.store.search(wanted_LD, number)
        rows = self.index.store.get(list(dict.fromkeys(id for each in hits for id in each.ids)), with_vectors=True)
        return Candidates(rows.document_ids, _full(rows) if len(rows) else wanted_LD[:0], rows.texts)


def unknown_item(id: str, close: Sequence[str]) -> InputError:
    """Make the error for an id that no item has."""
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"There is no item {id!r}; give the id of one that is there.{hint}")


def _full(rows: Rows) -> Floats:
    vectors = rows.vectors if rows.full_vectors is None else rows.full_vectors
    return unit(np.asarray(vectors, np.float32))
