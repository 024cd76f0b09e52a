"""Indexes as the server needs them, and views: the documents of one index that one key may see.

Routes read and write documents through a view alone, so that no route can forget whose they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from munjang.data.documents import Section
from munjang.index import Index
from munjang.index.candidates import Candidates
from munjang.index.cutting import CutDocuments, joined
from munjang.index.documents import Metadata, document_id
from munjang.server.errors import Refused
from munjang.server.steps import Steps
from munjang.server.tenants import Key
from munjang.server.turns import Turns
from munjang.stores.parsing import parse
from munjang.types import Floats, Hit, Scalar

T = TypeVar("T")


@dataclass(eq=False)
class ServedIndex:
    """An index with its name, and a thread of its own where clients take turns: stores need no locks."""

    name: str
    index: Index
    num_writes: int = 0  # through this server: a map that was drawn before is outdated

    def __post_init__(self) -> None:
        self.turns = Turns(f"index {self.name}")

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function of the index in its thread, when it is its client's turn."""
        return await self.turns.run(function)

    def close(self) -> None:
        """Finish what runs, and close the store."""
        self.turns.close()
        self.index.close()


@dataclass(frozen=True)
class Writing:
    """Documents to be stored; `all_ids` are those of all that were sent, equal ones included."""

    all_ids: list[str]
    ids: list[str]
    texts: list[str]
    metadata: list[Metadata]
    sections: Sequence[Sequence[Section]] | None


@dataclass(frozen=True)
class View:
    """The part of an index that a key may see. Methods run in the index's thread: `await view.run(view.count)`."""

    served: ServedIndex
    key: Key

    @property
    def index(self) -> Index:
        return self.served.index

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the index's thread."""
        return await self.served.run(function)

    def retrieve(
        self, query: str, k: int, candidates: int, where: str | None, vectors: Floats, **options: Any
    ) -> Candidates:
        """Return the candidates among what the key sees."""
        if self._is_empty:
            self.index.count(where)  # a filter that is wrong is refused here too
            where, empty = None, "document_id = '' and document_id = 'x'"
            return self.index.retrieve(query, k, candidates, empty, vectors, **options)
        return self.index.retrieve(query, k, candidates, self._narrowed(where), vectors, **options)

    def count(self) -> int:
        """Count passages."""
        return 0 if self._is_empty else self.index.count(self._narrowed(None))

    def passages(self, id: str) -> list[Hit]:
        """Return the passages of a document; none of another key's."""
        found = self.index.get(self.index.store.passages([id]).get(id, []))
        return [passage for passage in found if self.sees(passage.metadata)]

    def sees(self, metadata: Mapping[str, Any]) -> bool:
        """Tell whether metadata has what the key's documents have."""
        return all(_is_equal(metadata.get(name), value) for name, value in self.key.only.items())

    def delete(self, ids: Sequence[str]) -> int:
        """Delete documents that the key sees; return how many."""
        self.served.num_writes += 1
        return self.index.delete(ids if not self.key.only else [id for id in set(ids) if self.passages(id)])

    def writing(
        self,
        texts: Sequence[str],
        ids: Sequence[str | None],
        metadata: Sequence[Metadata],
        sections: Sequence[Sequence[Section]] | None,
    ) -> Writing:
        """Return documents as they are stored, with the key's own metadata, and each once."""
        given = [self._owned(values) for values in metadata]
        whole = [id or document_id(text, values) for id, text, values in zip(ids, texts, given, strict=True)]
        first_of = {id: row for row, id in reversed(list(enumerate(whole)))}
        rows = [row for row, id in enumerate(ids) if id is not None or first_of[whole[row]] == row]
        parts = None if sections is None else [sections[row] for row in rows]
        chosen, fields = [texts[row] for row in rows], [given[row] for row in rows]
        return Writing(whole, [whole[row] for row in rows], chosen, fields, parts)

    def cut(self, writing: Writing) -> Steps[CutDocuments]:
        """Cut documents into passages, a few at each step; in any thread."""
        found = []
        for part in self.index.cut_in_parts(writing.texts, writing.ids, writing.metadata, writing.sections):
            found.append(part)
            yield
        return joined(found)

    def put(self, cut: CutDocuments, vectors: Floats) -> None:
        """Store passages with their vectors. Another key may have taken an id meanwhile."""
        self.refuse_taken(list(dict.fromkeys(cut.document_ids)))
        self.index.put(cut, vectors)
        self.served.num_writes += 1

    def _owned(self, metadata: Metadata) -> Metadata:
        for name, value in self.key.only.items():
            if metadata.get(name) is not None and not _is_equal(metadata[name], value):
                message = f"The key {self.key.name} writes documents with {name} = {value!r} only."
                raise Refused("forbidden", message, param="metadata")
        return {**metadata, **self.key.only}

    def refuse_taken(self, ids: Sequence[str]) -> None:
        """Refuse ids of documents that are not the key's."""
        if not self.key.only:
            return
        for id, rows in self.index.store.passages([*set(ids)]).items():
            if not all(self.sees(passage.metadata) for passage in self.index.get(rows)):
                raise Refused("forbidden", f"The id {id!r} can't be used by this key; choose another.", param="id")

    @property
    def _is_empty(self) -> bool:
        """Tell whether no document can be the key's: the index has no such field yet."""
        return any(name not in self.index.store.schema.fields for name in self.key.only)

    def _narrowed(self, where: str | None) -> str | None:
        """Add the key's own filter. What was given has to stand by itself: `a) or (b` would get around it."""
        if where is not None:
            parse(where, self.index.store.schema.fields)
        own = " and ".join(f"{_quoted(name)} = {_literal(value)}" for name, value in self.key.only.items())
        return where if not own else own if where is None else f"({where}) and {own}"


def _is_equal(given: Any, value: Scalar) -> bool:
    return given is not None and isinstance(given, bool) == isinstance(value, bool) and given == value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Scalar) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)
