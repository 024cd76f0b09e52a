"""Index: texts in, hits out; on disk, in memory or in a database.

>>> from munjang import BiEncoder, Index
>>> index = Index.open("memory:", BiEncoder.load())  # a folder keeps it on disk
>>> ids = index.add(["서울은 한국의 수도이다.", "Paris is the capital of France."])
>>> index.search("What is the capital of Korea?", k=1)[0].text
'서울은 한국의 수도이다.'
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias, Unpack, overload

from munjang.arguments import check_arguments
from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.documents import Section
from munjang.errors import InputError
from munjang.index.candidates import (
    Candidates,
    Request,
    RetrieveOptions,
    as_queries,
    diverse,
    fused_hits,
    highlighted,
    one_per_document,
    widened,
)
from munjang.index.cutting import CutDocuments, cut_documents, in_parts, joined
from munjang.index.documents import Metadata, documents_of, new_fields, sections_by_id
from munjang.index.encoders import Encoders, check_same, load_own
from munjang.index.relevance import NOT_CALIBRATED, fitted, key_of, scale_of, with_relevance
from munjang.index.rerank import Reranking, SearchOptions, reranking_of
from munjang.index.schema import FORMAT, OpenOptions, check_unchanged, cutter_of, schema_of
from munjang.index.stored import StoredPassages
from munjang.index.ways import choose_ways, searched
from munjang.index.words import also
from munjang.index.writing import make_room, put_rows, write_documents
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.stores import open_store
from munjang.stores.base import NoSuchStore, Schema, Store
from munjang.text.highlights import Highlighter
from munjang.types import Array, Floats, Hit, Hits
from munjang.vectors.similarity import check_vectors

Queries: TypeAlias = str | list[str] | tuple[str, ...] | Array  # an array holds vectors


class Index(StoredPassages):
    """Models, what cuts documents into passages, and a store. Open one with `Index.open`.

    >>> with Index.open("memory:") as index:
    ...     index.add(["A cat sleeps.", "Shares fell."], ids=["cat", "shares"])
    ['cat', 'shares']
    """

    def __init__(self, store: Store, encoders: Encoders) -> None:
        self.store, self.encoders, self.model = store, encoders, encoders.dense
        self.cutter = cutter_of(encoders.dense, store.schema.facts)

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
        check: Callable[[Schema, BiEncoder], None] | None = None,
        **options: Unpack[OpenOptions],
    ) -> "Index":
        """Open an index, or create one where there is none.

        `location` is a folder (LanceDB), "memory:", "postgresql://...", "milvus+http://..." or "milvus-lite:PATH". A
        new index takes the bundled model if none is given; an existing one loads the models that it recorded, and
        another model's fingerprint raises ModelMismatch. `chunk`: longest passage in tokens (0: nothing is cut).
        `check` is called with schema and model before an index is created, and may refuse by raising.

        `sparse`, `late`: models whose vectors are kept too, to search by (a SparseEncoder and a MultiVectorEncoder, or
        their folders). `tokens`: how token vectors are stored, int8, float16 or float32; `pool_factor` keeps one of so
        many. `overlap`: tokens that a passage repeats of the one before. `context`: what is read in front of each
        passage, "title" (of the metadata) or "headings" too. `late_chunking`: each passage's vector is the mean of its
        tokens as they are read among its neighbours.

        Raises InputError for settings that an existing index can't change, ModelMismatch for another model than its
        own, and NoSuchStore with `create=False` where there is no index.

        >>> Index.open("memory:", BiEncoder.load(), chunk=128).info()["chunk"]
        128
        """
        check_arguments("open", options, OpenOptions.__annotations__)
        address = os.fspath(location)
        beside: dict[str, Any] = {name: options.get(name) for name in ("sparse", "late", "tokens", "pool_factor")}
        try:
            store = cls.open_store(address, name)
        except NoSuchStore:
            if not create:
                raise
            encoders = Encoders.new(load_own(model, device), **beside, device=device)
            schema = schema_of(encoders, vectors, chunk, model, options)
            if check is not None:
                check(schema, encoders.dense)
            return cls(open_store(address, schema, True, name), encoders)
        facts = store.schema.facts
        if facts.get("format", 0) > FORMAT:
            raise InputError(f"{address} was written by a newer version of Munjang; update this one.")
        check_unchanged(facts, options, address)
        encoder = load_own(facts["model"] if model is None else model, device)
        check_same(encoder, facts, "vectors")
        return cls(store, Encoders.recorded(encoder, store.schema, device, beside))

    def add(
        self,
        texts: Any = None,
        ids: Sequence[str] | None = None,
        metadata: Sequence[Metadata] | None = None,
        vectors: Any = None,
        progress: bool | None = None,
    ) -> list[str]:
        """Add documents and return their ids. An id that exists is an error. ids None: hashes of text and metadata.

        With `vectors` nothing is computed and no text is cut: one row a document.

        >>> Index.open("memory:").add(["A cat sleeps."], ids=["a"], metadata=[{"lang": "en"}])
        ['a']
        """
        documents = (texts, ids, metadata, vectors)
        return write_documents(self.store, self.encoders, self.cutter, *documents, progress, is_new=True)

    def upsert(
        self,
        texts: Any = None,
        ids: Sequence[str] | None = None,
        metadata: Sequence[Metadata] | None = None,
        vectors: Any = None,
        progress: bool | None = None,
        sections: Sequence[Sequence[Section]] | None = None,
    ) -> list[str]:
        """Add documents; one whose id exists replaces that document with all its passages.

        `sections` of each document, in order: a passage has the metadata of the one that most of it lies in.

        Returns their ids. Raises InputError for an id given twice, or metadata of another type than before.

        >>> index = Index.open("memory:")
        >>> index.upsert(["A cat sleeps."], ids=["a"]) + index.upsert(["A dog sleeps."], ids=["a"])
        ['a', 'a']
        >>> index.count()
        1
        """
        documents = (texts, ids, metadata, vectors)
        return write_documents(self.store, self.encoders, self.cutter, *documents, progress, False, sections)

    @overload
    def search(
        self,
        query: str,
        k: int = ...,
        candidates: int = ...,
        where: str | None = ...,
        **options: Unpack[SearchOptions],
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        query: list[str] | tuple[str, ...],
        k: int = ...,
        candidates: int = ...,
        where: str | None = ...,
        **options: Unpack[SearchOptions],
    ) -> list[list[Hit]]: ...
    @overload
    def search(
        self,
        query: Any,
        k: int = ...,
        candidates: int = ...,
        where: str | None = ...,
        **options: Unpack[SearchOptions],
    ) -> Any: ...
    def search(
        self,
        query: Queries,
        k: int = 10,
        candidates: int = 100,
        where: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> Any:
        """Return hits, best first: a list for one query (a text or a vector), a list of lists for several.

        `k` hits (10) out of so many `candidates` (100), which is also what a re-ranker reads. `where` filters by
        metadata: "year >= 2020 and lang = 'ko'". `rerank`: a cross-encoder, or a late-interaction model, that orders
        the candidates again. `group`: "document" shows the best passage of each, "passage" all of them. `around`: a
        hit's text is that of its passage and of so many neighbours on either side, or "document". `by`: some of
        "words" (BM25), "dense" (vectors), "sparse" and "late" (tokens), by default whatever the index has; `weights`
        says how much each counts, and `fusion` how: by "scores" or by "ranks". `diversity` (0 to 1) prefers hits that
        are unlike those before them. `min_score` leaves out hits whose relevance is lower (`Index.calibrate`).

        Raises InputError for an unknown option, a filter that can't be read, or a vector of another dimension.

        >>> index = Index.open("memory:")
        >>> ids = index.add(["서울은 한국의 수도이다.", "Shares fell."], metadata=[{"year": 2024}, {"year": 2025}])
        >>> index.search("수도가 어디야?", k=1, where="year >= 2024")[0].text
        '서울은 한국의 수도이다.'
        """
        check_arguments("search", options, {*SearchOptions.__annotations__, "k", "candidates", "where"})
        reranking = reranking_of(options.pop("rerank", None))
        return self.finish(self.retrieve(query, k, candidates, where, **options), reranking)  # type: ignore[misc]

    def retrieve(
        self,
        query: Queries,
        k: int = 10,
        candidates: int = 100,
        where: str | None = None,
        vectors: Floats | None = None,
        **options: Unpack[RetrieveOptions],
    ) -> Candidates:
        """Return the candidates of a search, which `finish` makes hits of. `vectors`: of texts, if they are known.

        The options are those of `search`, and so are the errors.

        >>> index = Index.open("memory:")
        >>> ids = index.add(["A cat sleeps.", "Shares fell."])
        >>> [len(hits) for hits in index.retrieve("cat", k=1).hits]
        [2]
        """
        request = Request(k, candidates, where, **options)
        queries, is_single = as_queries(query)
        ways = choose_ways(request.by, request.weights, self.store, queries is not None)
        filter = self._filter(where)
        asked = self.encoders.asked(queries, self._check_queries(query) if queries is None else vectors, ways)
        found = searched(self.store, ways, asked, max(candidates, k), filter)
        return Candidates(fused_hits(self.store, found, queries, request), queries, is_single, request)

    def finish(
        self, found: Candidates, reranking: Reranking | None = None, logits: Sequence[Sequence[float]] | None = None
    ) -> Any:
        """Re-rank, group and cut candidates. `logits`: of each query's candidates in their order, if they are known.

        Returns what `search` does. Raises InputError for a re-ranker where the query is a vector.

        >>> index = Index.open("memory:")
        >>> ids = index.add(["A cat sleeps.", "Shares fell."], ids=["a", "b"])
        >>> [hit.document_id for hit in index.finish(index.retrieve("cat", k=1))]
        ['a']
        """
        hits = found.hits
        if reranking is not None:
            if found.queries is None:
                raise InputError("Re-ranking reads the query's text; give a text, not a vector.")
            logits = reranking.score(found.queries, hits) if logits is None else logits
            hits = [reranking.order(*pair) for pair in zip(hits, logits, strict=True)]
        request = found.request
        if request.group == "document":
            hits = [one_per_document(row) for row in hits]
        if request.diversity:
            hits = [diverse(self.store, row, request) for row in hits]
        hits = [row[: request.k] for row in hits]
        scale = scale_of(self.store.schema.facts, reranking) if request.is_dense else None
        if request.min_score is not None and (scale is None or found.queries is None):
            raise InputError(NOT_CALIBRATED if scale is None else "min_score reads the query's text; give no vector.")
        if found.queries is not None:
            words = [Highlighter(query, also(query, self.store.schema.facts)) for query in found.queries]
            hits = [highlighted(*pair) for pair in zip(hits, words, strict=True)]
            if scale is not None:
                hits = [with_relevance(*pair, scale) for pair in zip(hits, words, strict=True)]
        if (lowest := request.min_score) is not None:
            hits = [[hit for hit in row if (hit.relevance or 0.0) >= lowest] for row in hits]
        if request.around:
            filter = self._filter(request.where)
            hits = [widened(self.store, row, request.around, filter) for row in hits]
        return Hits(hits[0]) if found.is_single else [Hits(row) for row in hits]

    def calibrate(
        self,
        queries: Sequence[str],
        relevant: Sequence[Collection[str]],
        k: int = 10,
        rerank: CrossEncoder | MultiVectorEncoder | Reranking | None = None,
    ) -> None:
        """Fit `Hit.relevance`, the probability that a hit answers its query, and keep the scale with the index.

        `relevant`: the ids of the documents that answer each query. With `rerank` the scale is that of searches with
        this re-ranker. Hits of the first `k` count as judged: a document that is not named is taken as irrelevant.

        Raises InputError where there are not as many sets of ids as queries, or too few judged hits.

        >>> index = Index.open("memory:")
        >>> ids = index.add(["서울은 한국의 수도이다.", "Shares fell."], ids=["a", "b"])
        >>> index.calibrate(["수도가 어디야?", "the stock market"] * 10, [["a"], ["b"]] * 10)
        >>> 0 <= index.search("수도", k=1)[0].relevance <= 1
        True
        """
        if len(queries) != len(relevant):
            raise InputError(f"Give relevant ids for every query; there are {len(queries)} and {len(relevant)}.")
        reranking = reranking_of(rerank)
        scale = fitted(self.search(list(queries), k, rerank=reranking), queries, relevant)
        facts = self.store.schema.facts
        known = {**facts.get("relevance", {}), key_of(reranking): {"weights": scale.weights, "bias": scale.bias}}
        self.store.put_facts({**facts, "relevance": known})

    @property
    def ways(self) -> list[str]:
        """The ways that a query's text is searched by if `by` is not given."""
        return choose_ways(None, None, self.store, True)

    def cut(self, texts: Any, ids: Sequence[str], metadata: Sequence[Metadata], sections: Any = None) -> CutDocuments:
        """Cut documents for `put`: the part of `upsert` that asks neither the model nor the store.

        >>> Index.open("memory:").cut(["A cat sleeps."], ids=["a"], metadata=[{}]).ids
        ['a#0']
        """
        return joined(list(self.cut_in_parts(texts, ids, metadata, sections)))

    def cut_in_parts(
        self, texts: Any, ids: Sequence[str], metadata: Sequence[Metadata], sections: Any = None
    ) -> Iterator[CutDocuments]:
        """Cut documents as `cut` does, some at a time: what is wrong with any is said before the first is cut.

        >>> index = Index.open("memory:")
        >>> [part.ids for part in index.cut_in_parts(["A cat sleeps."], ids=["a"], metadata=[{}])]
        [['a#0']]
        """
        documents = documents_of(texts, ids, metadata, None)[0]
        of_id = sections_by_id(ids, sections)
        for part in in_parts(documents):
            yield cut_documents(part, self.cutter, self.store, of_id)

    def put(self, cut: CutDocuments, vectors: Floats) -> None:
        """Store documents that are cut already, with the vectors of their passages; replace those of the same ids.

        >>> index = Index.open("memory:")
        >>> cut = index.cut(["A cat sleeps."], ids=["a"], metadata=[{}])
        >>> index.put(cut, index.model.encode_document(cut.texts))
        >>> index.count()
        1
        """
        rows = cut.encoded(self.encoders, self.store.schema, vectors)
        rows = make_room(self.store, rows, new_fields(cut.metadata, self.store.schema.fields))
        put_rows(self.store, rows, list(dict.fromkeys(cut.document_ids)), is_new=False)

    def _check_queries(self, query: Any) -> Floats:
        vectors, dimension = check_vectors(query, "query"), self.store.schema.dimension
        if vectors.shape[1] != dimension:
            raise InputError(f"The query has {vectors.shape[1]} dimensions, the index {dimension}; use one model.")
        return vectors
