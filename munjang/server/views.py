"""Indexes as the server needs them, and views: the documents of one index that one key may see.

Routes read and write documents through a view alone, so that no route can forget whose they are.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from munjang.data.documents import Section
from munjang.index import Index
from munjang.index.candidates import Candidates
from munjang.index.documents import Metadata, document_id
from munjang.server.errors import Refused
from munjang.server.tenants import Key
from munjang.stores.parsing import parse
from munjang.types import Floats, Hit, Scalar

T = TypeVar("T")


@dataclass(eq=False)
class ServedIndex:
    """An index with its name, and a thread of its own: one writer, and stores need no locks."""

    name: str
    index: Index
    num_writes: int = 0  # through this server: a map that was drawn before is outdated

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, f"munjang-index-{self.name}")

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function of the index in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def close(self) -> None:
        """Finish what runs, and close the store."""
        self._thread.shutdown()
        self.index.close()


@dataclass(frozen=True)
class View:
    """What a key sees of an index. Methods run in the index's thread: `await view.run(view.count)`."""

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

    def write(
        self,
        texts: Sequence[str],
        ids: Sequence[str | None],
        metadata: Sequence[Metadata],
        sections: Sequence[Sequence[Section]] | None = None,
    ) -> list[str]:
        """Upsert documents; those without an id get a hash of their content, and equal ones of these are one."""
        given = [self._owned(values) for values in metadata]
        whole = [id or document_id(text, values) for id, text, values in zip(ids, texts, given, strict=True)]
        if self.key.only:
            self._refuse_taken(whole)
        rows = [row for row, id in enumerate(ids) if id is not None or whole.index(whole[row]) == row]
        parts = None if sections is None else [sections[row] for row in rows]
        chosen, fields = [texts[row] for row in rows], [given[row] for row in rows]
        self.index.upsert(chosen, [whole[row] for row in rows], fields, progress=False, sections=parts)
        self.served.num_writes += 1
        return whole

    def num_tokens(self, texts: Sequence[str]) -> int:
        """Count the tokens of documents."""
        return int(sum(self.index.model.tokenizer.bodies(texts)[1]))

    def _owned(self, metadata: Metadata) -> Metadata:
        for name, value in self.key.only.items():
            if metadata.get(name) is not None and not _is_equal(metadata[name], value):
                message = f"The key {self.key.name} writes documents with {name} = {value!r} only."
                raise Refused("forbidden", message, param="metadata")
        return {**metadata, **self.key.only}

    def _refuse_taken(self, ids: Sequence[str]) -> None:
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
