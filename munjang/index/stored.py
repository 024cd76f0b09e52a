"""Passages in a store, and what of an index needs no model: look up, count, delete, describe, close."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Self

from munjang.index.candidates import hit_of
from munjang.index.fusion import Fused
from munjang.index.words import read_synonyms
from munjang.stores import open_store
from munjang.stores.base import Rows, Store
from munjang.stores.filters import Filter
from munjang.stores.parsing import parse
from munjang.types import Hit


class StoredPassages:
    """The part of an `Index` that asks its store alone."""

    store: Store

    @staticmethod
    def open_store(location: str, name: str = "default") -> Store:
        """Open the rows of an existing index: those of its newest model.

        Raises NoSuchStore where there is no index.

        >>> from munjang import Index
        >>> Index.open("my-index").close()
        >>> Index.open_store("my-index").schema.dimension
        384
        """
        store = open_store(location, None, False, name)
        while (moved := store.schema.facts.get("moved_to")) is not None:
            store.close()
            store = open_store(location, None, False, moved)
        return store

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove documents with all their passages and return how many there were.

        >>> from munjang import Index
        >>> index = Index.open("memory:")
        >>> ids = index.add(["A cat sleeps.", "Shares fell."], ids=["a", "b"])
        >>> index.delete(["a", "unknown"])
        1
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        present = [id for id, rows in self.store.passages(wanted).items() if rows]
        self.store.delete(present)
        return len(present)

    def get(self, ids: Sequence[str]) -> list[Hit]:
        """Return passages by id, in this order, without scores; unknown ids are left out.

        >>> from munjang import Index
        >>> index = Index.open("memory:")
        >>> ids = index.add(["A cat sleeps."], ids=["a"])
        >>> index.get(["a#0"])[0].text
        'A cat sleeps.'
        """
        rows = self.store.get(ids)
        return [hit_of(rows, row, row, Fused(id, float("nan"), {}, {})) for row, id in enumerate(rows.ids)]

    def count(self, where: str | None = None) -> int:
        """Count passages: all, or those that a filter keeps.

        Raises InputError for a filter that can't be read.

        >>> from munjang import Index
        >>> index = Index.open("memory:")
        >>> ids = index.add(["A cat sleeps.", "Shares fell."], metadata=[{"year": 2024}, {"year": 2025}])
        >>> index.count(), index.count("year > 2024")
        (2, 1)
        """
        return self.store.count(self._filter(where))

    def set_synonyms(self, path: str | os.PathLike[str]) -> int:
        """Keep a file of synonyms, which widen searches for words, with the index; return its number of terms.

        A line is "one, another" for terms that mean the same, or "one => another" for one direction. Raises InputError
        for other lines.

        >>> from munjang import Index
        >>> lines = open("synonyms.txt", "w", encoding="utf-8").write("수도, capital")
        >>> Index.open("memory:").set_synonyms("synonyms.txt")
        2
        """
        lines, number = read_synonyms(path)
        self.store.put_facts({**self.store.schema.facts, "synonyms": lines})
        return number

    def compact(self) -> dict[str, Any]:
        """Tidy up and build what makes searching fast, if it pays; return what was done.

        >>> from munjang import Index
        >>> type(Index.open("memory:").compact()).__name__
        'dict'
        """
        return self.store.compact()

    def info(self) -> dict[str, Any]:
        """Describe this index, for people and for `munjang index info`.

        >>> from munjang import Index
        >>> Index.open("memory:").info()["dimension"]
        384
        """
        facts = self.store.schema.facts
        names = ("model", "fingerprint", "beside", "chunk", "overlap", "context", "late_chunking", "terms")
        stated = {key: facts[key] for key in names if key in facts}
        shape = {"dimension": self.store.schema.dimension, "metric": self.store.schema.metric}
        return {**self.store.info(), **shape, "vectors": self.store.schema.vectors, **stated}

    def close(self) -> None:
        """Close files and connections.

        `with Index.open(...) as index:` closes it too.

        >>> from munjang import Index
        >>> Index.open("my-index").close()
        """
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def scan(self, batch_rows: int = 4096) -> Iterator[Rows]:
        """Read all rows with their vectors, batch by batch.

        Returns an iterator of Rows: ids, document_ids, texts, metadata, vectors...

        >>> from munjang import Index
        >>> index = Index.open("memory:")
        >>> ids = index.add(["A cat sleeps.", "Shares fell."])
        >>> [len(rows.ids) for rows in index.scan()]
        [2]
        """
        return self.store.scan(batch_rows)

    def _filter(self, where: str | None) -> Filter | None:
        return None if where is None else parse(where, self.store.schema.fields)
