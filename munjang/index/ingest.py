"""Adding many documents to an index, so that a killed run can be repeated: nothing is lost or stored twice."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from munjang.data.documents import Document
from munjang.index.documents import document_id
from munjang.index.index import Index
from munjang.index.writing import BATCH_DOCUMENTS
from munjang.progress import Progress

MAX_BATCH_CHARACTERS = 4_000_000  # so that a killed run has few books to read again


@dataclass(frozen=True)
class Summary:
    """Counts of documents."""

    num_added: int = 0
    num_known: int = 0  # with this text and metadata already

    def __str__(self) -> str:
        return f"{self.num_added:,} documents added, {self.num_known:,} were there already"


def ingest(index: Index, documents: Iterable[Document], progress: bool | None = None) -> Summary:
    """Add documents batch by batch; each batch is in the store whole or not at all.

    A document without an id gets a hash of its text and metadata, and is skipped if that exists. One with an id
    replaces the document of that id.
    """
    num_added = num_known = 0
    source = iter(documents)
    with Progress(label="indexing", enabled=progress) as bar:
        while batch := _take(source):
            by_id = {each.id or document_id(each.text, each.metadata): each for each in batch}
            hashes = [id for id, document in by_id.items() if document.id is None]
            known = {id for id, passages in index.store.passages(hashes).items() if passages}
            new = {id: document for id, document in by_id.items() if id not in known}
            if new:
                texts, metadata = zip(*((document.text, document.metadata) for document in new.values()), strict=True)
                sections = [document.sections for document in new.values()]
                index.upsert(texts, list(new), metadata, progress=False, sections=sections)
            num_added, num_known = num_added + len(new), num_known + len(known)
            bar.advance(len(batch))
    return Summary(num_added, num_known)


def _take(source: Iterator[Document]) -> list[Document]:
    """Take the next batch: so many documents, or fewer that are long."""
    batch: list[Document] = []
    num_characters = 0
    while len(batch) < BATCH_DOCUMENTS and num_characters < MAX_BATCH_CHARACTERS:
        document = next(source, None)
        if document is None:
            break
        batch.append(document)
        num_characters += len(document.text)
    return batch
