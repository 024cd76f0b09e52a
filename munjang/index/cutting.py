"""Documents cut into passages with the words of each: all of a write that needs neither the model nor the store."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from munjang.data.documents import Section
from munjang.index.documents import Metadata, section_metadata
from munjang.index.schema import stored_vectors
from munjang.index.words import document_terms
from munjang.stores.base import Rows, Schema, Store
from munjang.text.passages import Passage, PassageCutter
from munjang.types import Floats


@dataclass(frozen=True)
class CutDocuments:
    """Passages that wait for their vectors; those of a document stand together."""

    document_ids: Sequence[str]  # of each passage, as all that follows
    ids: Sequence[str]
    metadata: Sequence[Metadata]
    passages: Sequence[Passage]
    words: Sequence[str] | None  # None: the store has no use for them

    @property
    def texts(self) -> list[str]:
        return [passage.text for passage in self.passages]

    def rows(self, full: Floats, schema: Schema) -> Rows:
        """Return what a store takes, with the vectors of all passages."""
        stored, beside = stored_vectors(full, schema)
        starts, ends = [passage.start for passage in self.passages], [passage.end for passage in self.passages]
        ids, documents = list(self.ids), list(self.document_ids)
        words = None if self.words is None else list(self.words)
        return Rows(ids, documents, self.texts, starts, ends, list(self.metadata), stored, beside, words)

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
        return CutDocuments(
            self.document_ids[first:stop],
            self.ids[first:stop],
            self.metadata[first:stop],
            self.passages[first:stop],
            None if self.words is None else self.words[first:stop],
        )


def cut_documents(
    documents: Sequence[tuple[str, str, Metadata]],
    cutter: PassageCutter | None,
    store: Store,
    sections: Mapping[str, Sequence[Section]],
) -> CutDocuments:
    """Cut documents into passages, and these into words if the store matches words."""
    ids, document_ids, metadata, passages = list[str](), list[str](), list[Metadata](), list[Passage]()
    for id, text, values in documents:
        own = [Passage(text, 0, len(text))] if cutter is None else cutter.cut(text)
        passages += own
        ids += [f"{id}#{place}" for place in range(len(own))]
        document_ids += [id] * len(own)
        metadata += [{**values, **section_metadata(sections.get(id, ()), passage)} for passage in own]
    has_words, texts = store.abilities.has_terms, [passage.text for passage in passages]
    words = document_terms(texts, store.schema.facts) if has_words else None
    return CutDocuments(document_ids, ids, metadata, passages, words)
