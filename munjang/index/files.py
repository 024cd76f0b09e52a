"""Files in an index: only those that changed are read again, and one that can't be read is named and skipped.

A file is one document, its path is the id, and its passages keep the digest of the bytes that they were made from. So
a run that was killed knows what it has done, and a file whose new version was stored only in part is read again.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from munjang.data.documents import PROSE_SUFFIXES, Document, Reading, Section, list_files, read_documents, read_prose
from munjang.data.office import FORMATS
from munjang.data.office.extractor import Extractor
from munjang.data.office.part import Part, Unreadable
from munjang.errors import InputError, MunjangError
from munjang.index.index import Index
from munjang.index.ingest import Summary, ingest

FILES_AT_ONCE = 256  # whose digests are looked up together
READ_BYTES = 1 << 20
BETWEEN_PARTS = "\n\n"
Stamp: TypeAlias = tuple[int, int]


@dataclass
class FileSummary:
    """The outcome of a run over files."""

    num_documents: int = 0  # added or replaced
    num_known: int = 0  # unchanged
    num_deleted: int = 0
    skipped: dict[str, str] = field(default_factory=dict)  # path: why

    def __str__(self) -> str:
        deleted = f", {self.num_deleted:,} deleted" if self.num_deleted else ""
        skipped = f", {len(self.skipped):,} files skipped" if self.skipped else ""
        return f"{self.num_documents:,} documents added, {self.num_known:,} were there already{deleted}{skipped}"


@dataclass
class FileReader:
    """Reads files into an index. `on_skip` hears of each that can't be read, and why."""

    index: Index
    extractor: Extractor
    reading: Reading = field(default_factory=Reading)
    progress: bool | None = None
    on_skip: Callable[[str, str], None] = lambda path, reason: None

    def add(self, paths: Sequence[str]) -> FileSummary:
        """Add what is new or changed in files and folders."""
        summary = FileSummary()
        files = list(list_files(paths, SUFFIXES))
        whole = [path for path in files if self._is_whole(path)]
        for part in (self._changed(whole, summary), self._rows([path for path in files if path not in set(whole)])):
            done: Summary = ingest(self.index, part, self.progress)
            summary.num_documents += done.num_added
            summary.num_known += done.num_known
        return summary

    def prune(self, paths: Sequence[str]) -> int:
        """Delete the documents of files that are no longer in these folders; return how many."""
        folders = [str(Path(path)) + "/" for path in paths]
        ids = {
            id
            for rows in self.index.store.scan(with_vectors=False)
            for id, values in zip(rows.document_ids, rows.metadata, strict=True)
            if values.get("digest") is not None and any(id.startswith(folder) for folder in folders)
        }
        return self.index.delete(sorted(id for id in ids if not Path(id).exists()))

    def watch(
        self,
        paths: Sequence[str],
        interval_s: float,
        on_change: Callable[[FileSummary], None],
        done: Mapping[str, Stamp],
        max_rounds: int = -1,
    ) -> None:
        """Look at the folders again and again; add what changed, once it has stopped changing, delete what went.

        `done`: the stamps from before the folders were added, so that nothing that came meanwhile is missed.
        `max_rounds`: so many looks, -1: without end.
        """
        before = done
        while max_rounds:
            max_rounds -= 1
            time.sleep(interval_s)
            now = self.stamps(paths)
            changed = [path for path in now if now[path] != done.get(path) and now[path] == before.get(path)]
            gone = sorted(done.keys() - now.keys())
            before = now
            if not changed and not gone:
                continue
            summary = self.add(changed) if changed else FileSummary()
            summary.num_deleted = self.index.delete(gone)
            done = {path: stamp for path, stamp in done.items() if path in now} | {path: now[path] for path in changed}
            on_change(summary)

    def stamps(self, paths: Sequence[str]) -> dict[str, Stamp]:
        """Return time and size of every file, by which a change is seen."""
        stamps = {}
        for folder in paths:
            try:
                files = list(list_files([folder], SUFFIXES))
            except InputError:  # an empty folder may fill up
                continue
            for path in files:
                try:
                    facts = Path(path).stat()
                except FileNotFoundError:
                    continue
                stamps[path] = (facts.st_mtime_ns, facts.st_size)
        return stamps

    def _is_whole(self, path: str) -> bool:
        """Tell whether a file is one document, not a table of them."""
        suffix = Path(path).suffix.lower()
        return suffix in FORMATS or (suffix in PROSE_SUFFIXES and not self.reading.is_lines)

    def _changed(self, paths: Sequence[str], summary: FileSummary) -> Iterator[Document]:
        source = iter(paths)
        while batch := list(islice(source, FILES_AT_ONCE)):
            stored = self._digests(batch)
            for path in batch:
                try:
                    digest = digest_of(path)
                    if stored.get(path) == {digest}:
                        summary.num_known += 1
                        continue
                    yield self._document(path, digest)
                except (MunjangError, OSError) as error:
                    reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                    summary.skipped[path] = reason
                    self.on_skip(path, reason)

    def _digests(self, paths: Sequence[str]) -> dict[str, set[object]]:
        """Return the digests that the passages of each file have: one, or several where a write was interrupted."""
        passages = self.index.store.passages(paths)
        rows = self.index.store.get([id for ids in passages.values() for id in ids])
        digests: dict[str, set[object]] = {}
        for id, values in zip(rows.document_ids, rows.metadata, strict=True):
            digests.setdefault(id, set()).add(values.get("digest"))
        return digests

    def _document(self, path: str, digest: str) -> Document:
        return read_file(self.extractor, path, path, {"source": path, "digest": digest})

    def _rows(self, tables: Sequence[str]) -> Iterator[Document]:
        return read_documents(tables, self.reading) if tables else iter(())


SUFFIXES = (*PROSE_SUFFIXES, *FORMATS)


def read_file(extractor: Extractor, path: str, id: str, metadata: dict[str, str]) -> Document:
    """Read a file as one document; raise Unreadable or InputError where it holds no text."""
    if Path(path).suffix.lower() in FORMATS:
        return document_of(extractor.read(path), id, metadata)
    for document in read_prose(path):
        return Document(document.text, id, metadata)
    raise Unreadable("it holds no text")


def document_of(parts: Sequence[Part], id: str, metadata: dict[str, str]) -> Document:
    """Join the parts of a file to one document that knows where each page and heading begins."""
    sections, start = [], 0
    for part in parts:
        values = {"page": part.page, "heading": part.heading}
        sections.append(Section(start, {name: value for name, value in values.items() if value is not None}))
        start += len(part.text) + len(BETWEEN_PARTS)
    text = BETWEEN_PARTS.join(part.text for part in parts)
    return Document(text, id, metadata, sections)


def digest_of(path: str) -> str:
    """Return a hash of a file's bytes."""
    hashed = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(READ_BYTES):
            hashed.update(block)
    return hashed.hexdigest()
