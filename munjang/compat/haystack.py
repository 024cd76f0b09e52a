"""Use our models in Haystack 2 (extra): embedders, a ranker, an index as its document store, and a retriever.

from munjang.compat.haystack import MunjangDocumentStore, MunjangRanker, MunjangRetriever
store = MunjangDocumentStore("folder")
pipeline.add_component("retriever", MunjangRetriever(store, top_k=20))
pipeline.add_component("ranker", MunjangRanker(top_k=5))
"""

import json
import os
from dataclasses import replace
from typing import Any, Self

from munjang.bi_encoder import BiEncoder
from munjang.compat.conditions import condition, joined
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, MissingExtra
from munjang.index.index import Index

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
    from haystack.utils.filters import document_matches_filter
except ImportError:
    raise MissingExtra("haystack-ai", "haystack", "A model in Haystack") from None

DOCUMENT = "haystack_document"  # the field that holds all of a document but its text and vector, as JSON


class _Loading:
    """A component that loads a model when the pipeline warms up, or at the first call."""

    _kind: type[BiEncoder] | type[CrossEncoder] = BiEncoder

    def __init__(self, model: Any = None, options: dict[str, Any] | None = None) -> None:
        self.model, self.options = model, options or {}
        self._loaded: Any = None

    def warm_up(self) -> None:
        """Load the model."""
        if self._loaded is None:
            self._loaded = self.model if isinstance(self.model, self._kind) else self._kind.load(self.model)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, for pipelines that are saved."""
        if isinstance(self.model, self._kind):
            raise InputError("A pipeline with a loaded model can't be saved: give the path of the model instead.")
        path = None if self.model is None else os.fspath(self.model)
        return default_to_dict(self, model=path, **self._settings())

    def _settings(self) -> dict[str, Any]:
        return {"options": self.options}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a component from its settings."""
        made: Self = default_from_dict(cls, data)
        return made


@component
class MunjangTextEmbedder(_Loading):
    """A BiEncoder that encodes queries; `options` are those of `encode`."""

    def __init__(self, model: Any = None, options: dict[str, Any] | None = None) -> None:
        _Loading.__init__(self, model, options)  # the decorator makes another class, so that super() fails

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        """Return the vector of a query."""
        if not isinstance(text, str):
            raise TypeError(f"MunjangTextEmbedder takes a text, not {type(text).__name__}.")
        self.warm_up()
        return {"embedding": self._loaded.encode_query(text, **self.options).tolist()}


@component
class MunjangDocumentEmbedder(_Loading):
    """A BiEncoder that encodes documents; `options` are those of `encode`."""

    def __init__(self, model: Any = None, options: dict[str, Any] | None = None) -> None:
        _Loading.__init__(self, model, options)  # the decorator makes another class, so that super() fails

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Return copies of documents with their vectors."""
        _check_documents(documents)
        self.warm_up()
        texts = [document.content or "" for document in documents]
        vectors = self._loaded.encode_document(texts, **{"progress": False, **self.options}).tolist() if texts else []
        return {"documents": [replace(each, embedding=vec) for each, vec in zip(documents, vectors, strict=True)]}


@component
class MunjangRanker(_Loading):
    """A CrossEncoder that ranks documents for a query and keeps the best."""

    _kind = CrossEncoder

    def __init__(self, model: Any = None, top_k: int | None = None) -> None:
        _Loading.__init__(self, model)
        self.top_k = top_k

    def _settings(self) -> dict[str, Any]:
        return {"top_k": self.top_k}

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, Any]:
        """Return copies of the best documents, best first, with the scorer's scores."""
        _check_documents(documents)
        self.warm_up()
        texts = [document.content or "" for document in documents]
        hits = self._loaded.rank(query, texts, top_k or self.top_k, progress=False) if documents else []
        return {"documents": [replace(documents[hit.index], score=hit.score) for hit in hits]}


class MunjangDocumentStore:
    """An Index as Haystack's document store. Its model reads the texts; vectors of documents are not kept.

    Documents come back whole; of their metadata, texts, numbers and truth values can be filtered by in the engine.
    """

    def __init__(self, location: Any = "memory:", model: Any = None, **options: Any) -> None:
        """Open an index where `location` says; `model` and `options` are those of `Index.open`."""
        self.location, self.model, self.options = location, model, options
        self.index = location if isinstance(location, Index) else Index.open(location, model, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, for pipelines that are saved."""
        if isinstance(self.location, Index) or isinstance(self.model, BiEncoder):
            raise InputError("A store over an open index or a loaded model can't be saved: give paths instead.")
        path = None if self.model is None else os.fspath(self.model)
        return default_to_dict(self, location=os.fspath(self.location), model=path, **self.options)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a store from its settings."""
        made: Self = default_from_dict(cls, data)
        return made

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return len(self._documents())

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return all documents that a filter keeps, by Haystack's own rules."""
        if filters and "operator" not in filters and "conditions" not in filters:
            raise FilterError("A filter is {'field', 'operator', 'value'} or {'operator', 'conditions'}.")
        return [each for each in self._documents() if not filters or document_matches_filter(filters, each)]

    def write_documents(self, documents: list[Document], policy: Any = DuplicatePolicy.NONE) -> int:
        """Write documents and return how many; without a policy an id that is there is an error."""
        _check_documents(documents)
        known = {id for id, rows in self.index.store.passages([each.id for each in documents]).items() if rows}
        if known and policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
            raise DuplicateDocumentError(f"{len(known)} documents are there already, such as {sorted(known)[0]!r}.")
        written = [each for each in documents if policy != DuplicatePolicy.SKIP or each.id not in known]
        written = list({each.id: each for each in written}.values())
        if written:
            texts = [each.content or "" for each in written]
            self.index.upsert(texts, ids=[each.id for each in written], metadata=list(map(_fields, written)))
        return len(written)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents by their ids; ids that are not there are passed over."""
        if document_ids:
            self.index.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Delete all documents."""
        self.delete_documents([each.id for each in self._documents()])

    def search(self, query: Any, top_k: int, filters: dict[str, Any] | None, **options: Any) -> list[Document]:
        """Return the best documents for a query, a text or a vector, with their scores."""
        where = _where(filters) if filters else None
        hits = self.index.search(query, top_k, where=where, **{"group": "document", **options})
        return [_document(dict(hit.metadata), hit.score) for hit in hits]

    def _documents(self) -> list[Document]:
        found: dict[str, Document] = {}
        for rows in self.index.store.scan(with_vectors=False):
            for id, metadata in zip(rows.document_ids, rows.metadata, strict=True):
                found.setdefault(id, _document(dict(metadata)))
        return list(found.values())


@component
class MunjangRetriever:
    """Search a MunjangDocumentStore: words and vectors together, filters, re-ranking.

    `options` are those of `Index.search`, such as by="words" or candidates=500.
    """

    def __init__(
        self,
        document_store: MunjangDocumentStore,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(document_store, MunjangDocumentStore):
            raise InputError(f"document_store should be a MunjangDocumentStore, not {type(document_store).__name__}.")
        self.document_store, self.top_k, self.filters, self.options = document_store, top_k, filters, options or {}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, for pipelines that are saved."""
        store = self.document_store.to_dict()
        settings = {"top_k": self.top_k, "filters": self.filters, "options": self.options}
        return default_to_dict(self, document_store=store, **settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "MunjangRetriever":
        """Make a retriever from its settings."""
        settings = dict(data["init_parameters"])
        settings["document_store"] = MunjangDocumentStore.from_dict(settings["document_store"])
        return cls(**settings)

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, Any]:
        """Return the best documents for a query."""
        asked = filters or self.filters
        return {"documents": self.document_store.search(query, top_k or self.top_k, asked, **self.options)}


def _check_documents(documents: Any) -> None:
    if not isinstance(documents, list) or any(not isinstance(each, Document) for each in documents):
        raise ValueError(f"A list of Document is needed, not {type(documents).__name__} of something else.")


def _fields(document: Document) -> dict[str, Any]:
    whole = {**document.to_dict(flatten=False), "embedding": None, "sparse_embedding": None, "score": None}
    plain = {name: value for name, value in document.meta.items() if isinstance(value, (str, int, float, bool))}
    return {**plain, DOCUMENT: json.dumps(whole, ensure_ascii=False)}


def _document(metadata: dict[str, Any], score: float | None = None) -> Document:
    made: Document = replace(Document.from_dict(json.loads(metadata[DOCUMENT])), score=score)
    return made


def _where(filters: dict[str, Any]) -> str:
    """Return Haystack's filter as ours."""
    try:
        if "field" in filters:
            return condition(filters["field"].removeprefix("meta."), filters["operator"], filters["value"])
        return joined(filters["operator"], [_where(each) for each in filters["conditions"]])
    except KeyError as error:
        raise FilterError(f"{error} is missing in the filter {filters!r}.") from None
