"""Retrieval: do the documents that answer a query come first among all documents?"""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.errors import InputError
from munjang.evaluation.kinds.base import Kind, Measured, Settings, encode_documents, encode_queries, kind_of
from munjang.evaluation.kinds.corpus import Retrieval, read_retrieval
from munjang.evaluation.metrics.bootstrap import mean_of
from munjang.evaluation.metrics.ranking import rank_rows
from munjang.vectors.nearest import nearest

if TYPE_CHECKING:
    from munjang.bi_encoder import BiEncoder
    from munjang.multi_vector_encoder import MultiVectorEncoder
    from munjang.sparse_encoder import SparseEncoder

DEPTHS = (1, 3, 5, 10, 100)  # at which rankings are measured


def read(source: Any, settings: Settings) -> Retrieval:
    """Read a folder with corpus, queries and qrels, or a file of questions and paragraphs like SQuAD's."""
    if isinstance(source, Retrieval):
        return source
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(f"retrieval reads a folder with corpus, queries and qrels, not {type(source).__name__}.")
    return read_retrieval(source, settings.split, settings.max_rows)


def evaluate(model: Any, data: Retrieval, settings: Settings) -> Measured:
    """Measure nDCG, MAP, MRR, recall and precision at several depths."""
    if settings.by and kind_of(model) == "bi":
        run = search_index(model, data, max(DEPTHS), settings)
    else:
        run = SEARCHES[kind_of(model)](model, data, max(DEPTHS), settings)
    rows = rank_rows(data.relevances, run, DEPTHS)
    metrics = {name: float(np.mean(values)) for name, values in rows.items()}
    return Measured(metrics, (*data.notes, f"{len(data.corpus):,} documents"), mean_of(rows["ndcg@10"]))


def search(model: "BiEncoder", data: Retrieval, depth: int, settings: Settings) -> dict[str, dict[str, float]]:
    """Find the best documents of each query and their scores, by the model's own similarity function."""
    # the greatest id first: of equal scores at the last place the one that trec_eval would put in front is kept
    names = sorted(data.corpus, key=lambda name: name.encode("utf-8", "surrogatepass"), reverse=True)
    documents_BD = encode_documents(model, [data.corpus[name] for name in names], settings)
    queries_AD = encode_queries(model, list(data.queries.values()), settings)
    found = nearest(queries_AD, documents_BD, depth, model.similarity_name, progress=settings.progress)
    return {
        query: {names[row]: score for row, score in zip(rows, scores, strict=True)}
        for query, rows, scores in zip(data.queries, found.rows_AK.tolist(), found.scores_AK.tolist(), strict=True)
    }


def search_sparse(
    model: "SparseEncoder", data: Retrieval, depth: int, settings: Settings
) -> dict[str, dict[str, float]]:
    """Find the best documents by sparse vectors."""
    names, progress = list(data.corpus), settings.progress
    documents = model.encode_document(list(data.corpus.values()), progress=progress)
    queries = model.encode_query(list(data.queries.values()), progress=progress)
    return _best(data, names, model.similarity(queries, documents), depth)


def search_late(
    model: "MultiVectorEncoder", data: Retrieval, depth: int, settings: Settings
) -> dict[str, dict[str, float]]:
    """Find the best documents by MaxSim, each query with every document."""
    names, progress = list(data.corpus), settings.progress
    documents = model.encode_document(list(data.corpus.values()), progress=progress)
    queries = model.encode_query(list(data.queries.values()), progress=progress)
    return _best(data, names, model.similarity(queries, documents), depth)


def _best(data: Retrieval, names: list[str], scores_AB: Any, depth: int) -> dict[str, dict[str, float]]:
    order_AK = np.argsort(-np.asarray(scores_AB), axis=1, kind="stable")[:, :depth]
    return {
        query: {names[row]: float(scores_B[row]) for row in rows}
        for query, rows, scores_B in zip(data.queries, order_AK.tolist(), scores_AB, strict=True)
    }


def search_index(model: "BiEncoder", data: Retrieval, depth: int, settings: Settings) -> dict[str, dict[str, float]]:
    """Find the best documents as an index of the corpus does, passages and all, by the ways of `settings.by`."""
    from munjang.index import Index

    ways = tuple(settings.by)
    beside = {way: getattr(settings, way) for way in ("sparse", "late") if way in ways}
    missing = [way for way, given in beside.items() if given is None]
    if missing:
        raise InputError(f"Searching by {missing[0]} needs its model; give {missing[0]}=.")
    with Index.open("memory:", model, **beside) as index:
        index.add(list(data.corpus.values()), list(data.corpus), progress=settings.progress)
        found = index.search(list(data.queries.values()), depth, depth, by=ways)
    return {
        query: {hit.document_id: hit.score for hit in hits} for query, hits in zip(data.queries, found, strict=True)
    }


SEARCHES: dict[str, Any] = {"bi": search, "sparse": search_sparse, "late": search_late}
KIND = Kind(
    "retrieval: a folder with corpus, queries and qrels",
    {"bi": "ndcg@10", "late": "ndcg@10", "sparse": "ndcg@10"},
    read,
    evaluate,
    lambda contents: "qrels" in contents.tables,
)
