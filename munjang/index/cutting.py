"""Documents cut into passages with the words of each: all of a write that needs neither the model nor the store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from munjang.data.documents import Section
from munjang.errors import InputError
from munjang.index.context import FIELD, context_of, late_chunked, with_context
from munjang.index.documents import Metadata, section_metadata
from munjang.index.encoders import Encoders
from munjang.index.schema import stored_vectors
from munjang.index.words import document_terms
from munjang.stores.base import Rows, Schema, Store
from munjang.text.passages import Passage, PassageCutter
from munjang.types import Floats

Document = tuple[str, str, Metadata]  # id, text, metadata
PART_CHARS = 20_000  # of documents, that are cut in some 20 ms


@dataclass(frozen=True)
class CutDocuments:
    """Passages that wait for their vectors; those of a document stand together."""

    document_ids: Sequence[str]  # of each passage, as all that follows
    ids: Sequence[str]
    metadata: Sequence[Metadata]
    passages: Sequence[Passage]
    texts: Sequence[str]  # what is read of each: with its context, where the index puts that in front
    words: Sequence[str] | None  # None: the store has no use for them
    sources: Mapping[str, str]  # the whole text of each document

    def rows(self, full: Floats, schema: Schema, **beside: Any) -> Rows:
        """Return what a store takes, with the vectors of all passages; `beside`: sparse and token vectors."""
        stored, full_ND = stored_vectors(full, schema)
        starts, ends = [passage.start for passage in self.passages], [passage.end for passage in self.passages]
        ids, documents, texts = list(self.ids), list(self.document_ids), [passage.text for passage in self.passages]
        words = None if self.words is None else list(self.words)
        return Rows(ids, documents, texts, starts, ends, list(self.metadata), stored, full_ND, words, **beside)

    def encoded(
        self, encoders: Encoders, schema: Schema, vectors_ND: Floats | None, progress: bool | None = False
    ) -> Rows:
        """Return what a store takes, computing what is not known: `vectors_ND` are the model's of `texts`."""
        if vectors_ND is not None and encoders.others and not any(self.texts):
            raise InputError("This index keeps sparse or token vectors too, which are made of texts; give texts.")
        if schema.facts.get("late_chunking") and any(self.texts):
            vectors_ND = late_chunked(encoders.dense, list(self._documents()), progress)
        if vectors_ND is None:
            vectors_ND, beside = encoders.document(self.texts, progress)
            return self.rows(vectors_ND, schema, **beside)
        return self.rows(vectors_ND, schema, **encoders.beside(self.texts, progress))

    def _documents(self) -> Iterator[tuple[str, Sequence[Passage]]]:
        for first, stop in self.parts(1):
            yield self.sources[self.document_ids[first]], self.passages[first:stop]

    def parts(self, num_passages: int) -> Iterator[tuple[int, int]]:
        """Yield from which passage up to which other whole documents have at least so many together."""
        first, last = 0, len(self.ids)
        for at in range(1, last + 1):
            is_end = at == last or self.document_ids[at] != self.document_ids[at - 1]
            if is_end and (at - first >= num_passages or at == last):
                yield first, at
                first = at

    def part(self, first: int, stop: int) -> "CutDocuments":
        """Return some of the passages."""
        return replace(
            self,
            document_ids=self.document_ids[first:stop],
            ids=self.ids[first:stop],
            metadata=self.metadata[first:stop],
            passages=self.passages[first:stop],
            texts=self.texts[first:stop],
            words=None if self.words is None else self.words[first:stop],
        )


def joined(parts: Sequence[CutDocuments]) -> CutDocuments:
    """Return the passages of several writes as those of one."""
    if len(parts) == 1:
        return parts[0]
    names = ("document_ids", "ids", "metadata", "passages", "texts")
    lists: dict[str, Any] = {name: [value for part in parts for value in getattr(part, name)] for name in names}
    words = None if parts[0].words is None else [value for part in parts for value in part.words or ()]
    return CutDocuments(**lists, words=words, sources={id: text for part in parts for id, text in part.sources.items()})


def in_parts(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    """Yield documents with at most PART_CHARS together; a longer one is alone, and no documents are one part.

    >>> [len(part) for part in in_parts([("a", "x" * 9_000, {}), ("b", "x" * 9_000, {}), ("c", "x" * 9_000, {})])]
    [2, 1]
    """
    first = size = 0
    for row, (_, text, _) in enumerate(documents):
        if row > first and size + len(text) > PART_CHARS:
            yield documents[first:row]
            first, size = row, 0
        size += len(text)
    yield documents[first:]


def cut_documents(
    documents: Sequence[Document],
    cutter: PassageCutter | None,
    store: Store,
    sections: Mapping[str, Sequence[Section]],
) -> CutDocuments:
    """Cut documents into passages, and these into words if the store matches words."""
    ids, document_ids, metadata, passages = list[str](), list[str](), list[Metadata](), list[Passage]()
    context = store.schema.facts.get("context", "none")
    for id, text, values in documents:
        if context != "none" and FIELD in values:
            raise InputError(f"This index writes {FIELD!r} itself; give the metadata of {id!r:.40} another name.")
        own = [Passage(text, 0, len(text))] if cutter is None else cutter.cut(text)
        passages += own
        ids += [f"{id}#{place}" for place in range(len(own))]
        document_ids += [id] * len(own)
        for passage in own:
            above = context_of(text, passage, values, context)
            section = section_metadata(sections.get(id, ()), passage)
            metadata.append({**values, **section, **({FIELD: above} if above else {})})
    texts = read_texts([passage.text for passage in passages], metadata, store.schema)
    words = document_terms(texts, store.schema.facts) if store.abilities.has_terms else None
    sources = {id: text for id, text, _ in documents}
    return CutDocuments(document_ids, ids, metadata, passages, texts, words, sources)


def read_texts(texts: Sequence[str], metadata: Sequence[Metadata], schema: Schema) -> list[str]:
    """Return what is read of each passage: its text, with its context in front where the index has that."""
    if "context" not in schema.facts:
        return list(texts)
    return [with_context(*pair) for pair in zip(texts, metadata, strict=True)]
