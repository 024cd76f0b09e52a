"""Index: texts in, hits out; on disk, in memory or in a database.

>>> from munjang import BiEncoder, Index
>>> index = Index.open("memory:", BiEncoder.load())  # a folder keeps it on disk
>>> ids = index.add(["서울은 한국의 수도이다.", "Paris is the capital of France."])
>>> index.search("What is the capital of Korea?", k=1)[0].text
'서울은 한국의 수도이다.'
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from munjang import checkpoint
from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, MunjangError
from munjang.index.given import Metadata, documents_of, kind_of
from munjang.index.hits import Hit, fuse, one_per_document
from munjang.index.rerank import Reranking
from munjang.stores import open_store
from munjang.stores.base import Found, NoSuchStore, Rows, Schema, Store
from munjang.stores.filters import Filter
from munjang.stores.parsing import parse
from munjang.text.chunking import Chunker, Passage
from munjang.text.inputs import as_texts
from munjang.text.terms import method, terms
from munjang.types import Floats
from munjang.vectors.precision import quantize
from munjang.vectors.similarity import check_vectors

FORMAT = 1  # of what an index writes down beside its rows
BATCH = 2048  # documents that are cut, encoded and stored together: what a killed run may have to do again
MAX_PASSAGE = 256  # tokens
OVERLAP = 32
GROUPS = ("document", "passage")


class ModelMismatch(MunjangError):
    """An index is opened with another model than the one that made its vectors."""


class Index:
    """A model, a chunker and a store. Open one with `Index.open`."""

    def __init__(self, store: Store, model: BiEncoder, chunker: Chunker | None) -> None:
        self.store, self.model, self.chunker = store, model, chunker

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        model: str | os.PathLike[str] | BiEncoder | None = None,
        name: str = "default",
        create: bool = True,
        vectors: str = "float32",
        chunk: int | None = None,
        device: str | None = None,
    ) -> "Index":
        """An index that is there, or a new one.

        `location` is a folder (LanceDB), "memory:", "postgresql://...", "milvus+http://..." or "milvus-lite:PATH". A
        new index takes the bundled model if none is given; one that is there loads the model that it recorded, and
        another model's fingerprint raises ModelMismatch. `chunk`: longest passage in tokens (0: nothing is cut).
        """
        place = os.fspath(location)
        try:
            store = cls.open_store(place, name)
        except NoSuchStore:
            if not create:
                raise
            encoder = _load(model, device)
            schema = schema_of(encoder, vectors, chunk, model)
            return cls(open_store(place, schema, True, name), encoder, _chunker(encoder, schema.facts["chunk"]))
        facts = store.schema.facts
        if facts.get("format", 0) > FORMAT:
            raise InputError(f"{place} was written by a newer version of Munjang; update this one.")
        encoder = _load(facts["model"] if model is None else model, device)
        if encoder.fingerprint != facts["fingerprint"]:
            raise ModelMismatch(
                f"{place} holds vectors of {facts['model']} ({facts['fingerprint'][:12]}), not of this model "
                f"({encoder.fingerprint[:12]}). Open it without a model, or compute its vectors anew with reembed."
            )
        return cls(store, encoder, _chunker(encoder, facts["chunk"]))

    @staticmethod
    def open_store(place: str, name: str = "default") -> Store:
        """The rows of an index that is there: those of its newest model."""
        store = open_store(place, None, False, name)
        while (moved := store.schema.facts.get("moved_to")) is not None:
            store.close()
            store = open_store(place, None, False, moved)
        return store

    def add(
        self,
        texts: Any = None,
        ids: Sequence[str] | None = None,
        metadata: Sequence[Metadata] | None = None,
        vectors: Any = None,
        progress: bool | None = None,
    ) -> list[str]:
        """Add documents; gives their ids. An id that is there is an error. ids None: hashes of text and metadata.

        With `vectors` nothing is computed and no text is cut: one row a document.
        """
        return self._write(texts, ids, metadata, vectors, progress, is_new=True)

    def upsert(
        self,
        texts: Any = None,
        ids: Sequence[str] | None = None,
        metadata: Sequence[Metadata] | None = None,
        vectors: Any = None,
        progress: bool | None = None,
    ) -> list[str]:
        """Add documents; those with an id that is there already take its place, passages and all."""
        return self._write(texts, ids, metadata, vectors, progress, is_new=False)

    def delete(self, ids: str | Sequence[str]) -> int:
        """Remove documents with all their passages; gives how many documents there were."""
        given = [ids] if isinstance(ids, str) else list(ids)
        there = [id for id, rows in self.store.passages(given).items() if rows]
        self.store.delete(there)
        return len(there)

    def search(
        self,
        query: Any,
        k: int = 10,
        candidates: int = 100,
        where: str | None = None,
        rerank: CrossEncoder | Reranking | str | None = None,
        group: str = "document",
        hybrid: bool = False,
    ) -> Any:
        """Hits, best first: a list for one query (a text or a vector), a list of lists for several.

        `where` filters by metadata: "year >= 2020 and lang = 'ko'". `rerank`: a cross-encoder that orders the hits
        once more. `group`: "document" shows the best passage of each, "passage" all of them. `hybrid` looks for words
        as well (BM25) and puts both orders together.
        """
        if k < 1 or candidates < 1:
            raise InputError(f"k and candidates must be at least 1, not {k} and {candidates}.")
        if group not in GROUPS:
            raise InputError(f"Unknown group {group!r}; choose from {', '.join(GROUPS)}.")
        texts, vectors, is_single = self._queries(query)
        filter = None if where is None else parse(where, self.store.schema.fields)
        most = max(candidates, k)
        found = self.store.search(vectors, most, filter)
        if hybrid:
            found = self._with_words(texts, found, most, filter)
        hits = self._hits(found)
        if rerank is not None:
            if texts is None:
                raise InputError("Re-ranking reads the query's text; give a text, not a vector.")
            hits = _reranking(rerank)(texts, hits)
        if group == "document":
            hits = [one_per_document(each) for each in hits]
        short = [each[:k] for each in hits]
        return short[0] if is_single else short

    def get(self, ids: Sequence[str]) -> list[Hit]:
        """Passages by id, in this order; ids that are not there are left out."""
        return self._as_hits(self.store.get(ids), {})

    def count(self, where: str | None = None) -> int:
        """Passages, all or those that fit."""
        return self.store.count(None if where is None else parse(where, self.store.schema.fields))

    def compact(self) -> dict[str, Any]:
        """Tidy up and build what makes searching fast, if it pays."""
        return self.store.compact()

    def info(self) -> dict[str, Any]:
        """What this index is, for people and for `munjang index info`."""
        facts = self.store.schema.facts
        mine = {key: facts[key] for key in ("model", "fingerprint", "chunk", "terms")}
        shown = {"dimension": self.store.schema.dimension, "metric": self.store.schema.metric}
        return {**self.store.info(), **shown, "vectors": self.store.schema.vectors, **mine}

    def close(self) -> None:
        """Let go of files and connections."""
        self.store.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(
        self,
        texts: Any,
        ids: Sequence[str] | None,
        metadata: Sequence[Metadata] | None,
        vectors: Any,
        progress: bool | None,
        is_new: bool,
    ) -> list[str]:
        documents, known = documents_of(texts, ids, metadata, vectors)
        self.extend([each[2] for each in documents])
        source = iter(documents)
        start = 0
        while some := list(islice(source, BATCH)):
            part = None if known is None else known[start : start + len(some)]
            rows = self._rows(some, part, progress)
            names = [id for id, _, _ in some]
            if is_new:
                there = [id for id, old in self.store.passages(names).items() if old]
                if there:
                    raise InputError(f"{there[0]!r} is in the index already; upsert replaces it.")
            self._put(rows, names, is_new)
            start += len(some)
        return [id for id, _, _ in documents]

    def _put(self, rows: Rows, names: Sequence[str], is_new: bool) -> None:
        """Store rows. A document that got shorter leaves no passages behind, and is never gone in between."""
        if is_new:
            self.store.add(rows)
            return
        before = {id for old in self.store.passages(names).values() for id in old}
        self.store.upsert(rows)
        gone = before - set(rows.ids)
        if gone:
            self.store.remove(sorted(gone))

    def _rows(
        self, documents: Sequence[tuple[str, str, Metadata]], known: Floats | None, progress: bool | None
    ) -> Rows:
        passages: list[tuple[str, str, Passage, Metadata]] = []
        for id, text, values in documents:
            whole = [Passage(text, 0, len(text))]
            pieces = whole if self.chunker is None or known is not None else self.chunker.cut(text)
            passages += [(_passage_id(id, place), id, piece, values) for place, piece in enumerate(pieces)]
        texts = [piece.text for _, _, piece, _ in passages]
        full = self.model.encode_document(texts, progress=progress) if known is None else known
        stored, beside = stored_vectors(full, self.store.schema)
        return Rows(
            [id for id, _, _, _ in passages],
            [document for _, document, _, _ in passages],
            texts,
            [piece.start for _, _, piece, _ in passages],
            [piece.end for _, _, piece, _ in passages],
            [values for _, _, _, values in passages],
            stored,
            beside,
            terms(texts) if self.store.abilities.has_terms else None,
        )

    def extend(self, metadata: Sequence[Metadata]) -> None:
        """Make room for fields that no row had before."""
        fields = dict(self.store.schema.fields)
        new: dict[str, str] = {}
        for values in metadata:
            for name, value in values.items():
                if value is None:
                    continue
                kind = kind_of(name, value)
                known = fields.get(name) or new.get(name)
                if known is None or (known == "int" and kind == "float" and name in new):
                    new[name] = kind
                elif kind != known and not (known == "float" and kind == "int"):
                    raise InputError(f"The field {name!r} is {known} in this index, not {kind} ({value!r:.40}).")
        if new:
            self.store.extend(new)

    def _queries(self, query: Any) -> tuple[list[str] | None, Floats, bool]:
        if isinstance(query, str):
            return [query], self.model.encode_query([query], progress=False), True
        if isinstance(query, (list, tuple)) and (not query or isinstance(query[0], str)):
            texts = as_texts(list(query), "queries")
            return texts, self.model.encode_query(texts, progress=False), False
        vectors = check_vectors(query, "query")
        if vectors.shape[1] != self.store.schema.dimension:
            raise InputError(
                f"The query has {vectors.shape[1]} dimensions, the index {self.store.schema.dimension}; "
                "they must be of one model."
            )
        return None, vectors, np.ndim(query) == 1

    def _with_words(self, texts: list[str] | None, found: list[Found], most: int, filter: Filter | None) -> list[Found]:
        if texts is None:
            raise InputError("hybrid looks for words; give a text, not a vector.")
        if not self.store.abilities.has_terms:
            raise InputError("This engine has no BM25; leave hybrid out, or use a folder or memory:.")
        by_words = self.store.search_terms(terms(texts), most, filter)
        return [fuse(pair, most) for pair in zip(found, by_words, strict=True)]

    def _hits(self, found: Sequence[Found]) -> list[list[Hit]]:
        wanted = list(dict.fromkeys(id for each in found for id in each.ids))
        rows = self.store.get(wanted)
        place = {id: at for at, id in enumerate(rows.ids)}
        hits = []
        for each in found:
            there = [(id, score) for id, score in zip(each.ids, each.scores, strict=True) if id in place]
            hits.append([self._hit(rows, place[id], score, rank) for rank, (id, score) in enumerate(there, 1)])
        return hits

    def _as_hits(self, rows: Rows, scores: Mapping[str, float]) -> list[Hit]:
        return [self._hit(rows, at, scores.get(id, float("nan")), at + 1) for at, id in enumerate(rows.ids)]

    @staticmethod
    def _hit(rows: Rows, at: int, score: float, rank: int) -> Hit:
        where = (rows.texts[at], rows.starts[at], rows.ends[at])
        return Hit(rows.ids[at], rows.document_ids[at], *where, rows.metadata[at], score, score, rank)

    def scan(self, batch_rows: int = 4096) -> Iterator[Rows]:
        """All rows with their vectors, for export."""
        return self.store.scan(batch_rows)


def _load(model: Any, device: str | None) -> BiEncoder:
    return model if isinstance(model, BiEncoder) else BiEncoder.load(model, device=device)


def schema_of(model: BiEncoder, vectors: str, chunk: int | None, given: Any) -> Schema:
    """What an index of this model writes down."""
    where = model.model.folder if given is None or isinstance(given, BiEncoder) else given
    is_folder = Path(where).is_dir()
    facts: dict[str, Any] = {
        "format": FORMAT,
        "model": (checkpoint.name_of(Path(where)) or os.path.abspath(where)) if is_folder else where,
        "fingerprint": model.fingerprint,
        "chunk": _chunk_size(model, chunk),
        "terms": method(),
    }
    if vectors == "int8":
        if model.ranges is None:
            raise InputError("int8 vectors need the model's ranges; call model.calibrate(texts) and save it first.")
        facts["ranges"] = np.asarray(model.ranges).tolist()
    metric = "dot" if model.similarity_name == "dot" else model.similarity_name
    return Schema(model.dimension, metric, vectors, {}, facts)


def stored_vectors(full: Floats, schema: Schema) -> tuple[Any, Floats | None]:
    """Vectors as a store keeps them, and the full ones beside those of fewer bits."""
    if schema.vectors in ("float32", "float16"):
        return full.astype(schema.vectors), None
    if schema.vectors == "binary":
        return quantize(full, "ubinary", None), full
    return quantize(full, "int8", np.array(schema.facts["ranges"], np.float32)), full


def _chunk_size(model: BiEncoder, chunk: int | None) -> int:
    limit = model.max_length
    room = MAX_PASSAGE if limit is None else min(MAX_PASSAGE, limit - model.tokenizer.single.num_special)
    if chunk is None:
        return room
    if chunk < 0:
        raise InputError(f"chunk is the longest passage in tokens, or 0 for none, not {chunk}.")
    return chunk


def _chunker(model: BiEncoder, size: int) -> Chunker | None:
    if not size:
        return None
    return Chunker(size, min(OVERLAP, size // 4), lambda texts: model.tokenizer.bodies(list(texts))[1])


def _reranking(given: CrossEncoder | Reranking | str) -> Reranking:
    if isinstance(given, Reranking):
        return given
    return Reranking(CrossEncoder.load(given) if isinstance(given, str) else given)


def _passage_id(document: str, place: int) -> str:
    return f"{document}#{place}"
