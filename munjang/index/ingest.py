"""Many documents into an index, so that a run that was killed can be repeated: nothing is lost, nothing is twice."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from munjang.data.documents import Document
from munjang.index.documents import document_id
from munjang.index.index import BATCH_DOCUMENTS, Index
from munjang.progress import Progress


@dataclass(frozen=True)
class Summary:
    """What was done with the documents."""

    num_added: int = 0
    num_there: int = 0  # with this text and metadata already

    def __str__(self) -> str:
        return f"{self.num_added:,} documents added, {self.num_there:,} were there already"


def ingest(index: Index, documents: Iterable[Document], progress: bool | None = None) -> Summary:
    """Add documents batch by batch; each batch is in the store whole or not at all.

    A document without an id is known by a hash of its text and metadata, and passed over if it is there. One with an id
    replaces the one of that id.
    """
    num_added = num_there = 0
    source = iter(documents)
    with Progress(label="indexing", enabled=progress) as bar:
        while some := list(islice(source, BATCH_DOCUMENTS)):
            named = {each.id or document_id(each.text, each.metadata): each for each in some}
            hashed = [id for id, each in named.items() if each.id is None]
            there = {id for id, rows in index.store.passages(hashed).items() if rows}
            new = {id: each for id, each in named.items() if id not in there}
            if new:
                texts, metadata = [each.text for each in new.values()], [each.metadata for each in new.values()]
                index.upsert(texts, list(new), metadata, progress=False)
            num_added, num_there = num_added + len(new), num_there + len(there)
            bar.advance(len(some))
    return Summary(num_added, num_there)
