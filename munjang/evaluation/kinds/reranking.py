"""Re-ranking: whether the right ones of a query's candidates come first.

Candidates come with the data (rows of query, positive and negatives; rows of query, document and yes or no; a table
`candidates` in a retrieval folder), or a first stage finds them in the folder's corpus.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import (
    Kind,
    Measured,
    Settings,
    cross_scores,
    encode_documents,
    encode_queries,
    is_positive,
    kind_of,
)
from munjang.evaluation.kinds.corpus import Retrieval, find, read_relevances, read_retrieval
from munjang.evaluation.kinds.retrieval import search
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.ranking import rank_metrics
from munjang.nn.similarity import PAIRWISE
from munjang.types import Floats

WHOLE = 1_000_000  # longer than any list of candidates


@dataclass(frozen=True)
class Candidates:
    """A retrieval set, and the documents of each query that are to be ranked; None: a first stage finds them."""

    data: Retrieval
    documents: dict[str, list[str]] | None  # ids by query id

    def __len__(self) -> int:
        return len(self.data)


def read(source: Any, settings: Settings) -> Candidates:
    """A retrieval folder, or rows."""
    if isinstance(source, Retrieval):
        return Candidates(source, None)
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        data = read_retrieval(source, settings.split, settings.max_rows)
        path = find(source, "candidates")
        return Candidates(data, None if path is None else _stated(read_relevances(path), data))
    if isinstance(source, Examples) and source.labels is None:
        return _of_columns(read_rows(source, settings, (3, None)))
    try:
        return _of_pairs(read_rows(source, settings, (2, 2), "labels"))
    except InputError as as_pairs:
        if isinstance(source, Examples):
            raise
        try:
            return _of_columns(read_rows(source, settings, (3, None)))
        except InputError as as_columns:
            raise InputError(
                "reranking reads rows of query, document and yes or no, or of query, positive and negatives. "
                f"{as_pairs} {as_columns}"
            ) from None


def evaluate(model: Any, candidates: Candidates, settings: Settings) -> Measured:
    """MAP over the whole list, MRR and nDCG at 10; of a first stage the same before it was ranked again."""
    data, notes, before = candidates.data, list(candidates.data.notes), {}
    documents = candidates.documents
    if documents is None:
        if settings.first_stage is None:
            raise InputError(f"{data.name} has no candidates: a bi-encoder has to find them, --first-stage MODEL.")
        run = search(settings.first_stage, data, settings.candidates, settings)
        before = {f"before_{name}": value for name, value in _metrics(data, run).items()}
        documents = {query: list(found) for query, found in run.items()}
        notes.append(f"the best {settings.candidates} documents of the first stage are ranked again")
    pairs = [(query, name) for query, names in documents.items() for name in names]
    scores = _scores(model, [data.queries[q] for q, _ in pairs], [data.corpus[d] for _, d in pairs], settings)
    found: dict[str, dict[str, float]] = {query: {} for query in documents}
    for (query, name), score in zip(pairs, scores.tolist(), strict=True):
        found[query][name] = score
    return Measured(_metrics(data, found) | before, tuple(notes))


def _metrics(data: Retrieval, run: dict[str, dict[str, float]]) -> dict[str, float]:
    whole = rank_metrics(data.relevances, run, [WHOLE], ["map"])[f"map@{WHOLE}"]
    return {"map": whole, **rank_metrics(data.relevances, run, [10], ["mrr", "ndcg"])}


def _scores(model: Any, queries: list[str], documents: list[str], settings: Settings) -> Floats:
    if kind_of(model) == "cross":
        return cross_scores(model, queries, documents, settings)
    a_ND, b_ND = encode_queries(model, queries, settings), encode_documents(model, documents, settings)
    return PAIRWISE[model.similarity_name](a_ND, b_ND)


def _stated(given: dict[str, dict[str, float]], data: Retrieval) -> dict[str, list[str]]:
    """Candidates of the queries that are measured; those without any count as 0."""
    return {query: [name for name in given.get(query, {}) if name in data.corpus] for query in data.queries}


def _of_columns(examples: Examples) -> Candidates:
    """Each row: query, positive, negatives. Rows of one query are put together."""
    queries, positives, *negatives = examples.texts
    judged: dict[str, dict[str, bool]] = {}
    for row, query in enumerate(queries):
        for column in negatives:
            judged.setdefault(query, {}).setdefault(column[row], False)
        judged.setdefault(query, {})[positives[row]] = True  # another row may know it as a negative
    return _candidates(examples.name, judged)


def _of_pairs(examples: Examples) -> Candidates:
    """Each row: query, document, yes or no."""
    judged: dict[str, dict[str, bool]] = {}
    for query, document, is_right in zip(*examples.texts, is_positive(examples).tolist(), strict=True):
        documents = judged.setdefault(query, {})
        documents[document] = is_right or documents.get(document, False)
    return _candidates(examples.name, judged)


def _candidates(name: str, judged: dict[str, dict[str, bool]]) -> Candidates:
    """Ids are given so that of equal scores the wrong one comes first: who scores all the same gains nothing."""
    kept = {query: documents for query, documents in judged.items() if 0 < sum(documents.values()) < len(documents)}
    if not kept:
        raise InputError(f"{name}: no query has both a right and a wrong document to rank.")
    corpus: dict[str, str] = {}
    relevances: dict[str, dict[str, float]] = {}
    ids: dict[str, list[str]] = {}
    for query, documents in kept.items():
        named = {
            f"{'right' if right else 'wrong'} {place} of {query}": (document, right)
            for place, (document, right) in enumerate(documents.items())
        }
        corpus |= {key: document for key, (document, _) in named.items()}
        relevances[query] = {key: float(right) for key, (_, right) in named.items()}
        ids[query] = list(named)
    notes = [f"{np.mean([len(each) for each in ids.values()]):.1f} candidates a query"]
    if len(kept) < len(judged):
        notes.append(f"{len(judged) - len(kept):,} queries left out: all of their documents are right, or all wrong")
    return Candidates(Retrieval(name, corpus, {query: query for query in kept}, relevances, tuple(notes)), ids)


KIND = Kind(
    "re-ranking: a query's candidates, of rows or of a first stage", {"bi": "map", "cross": "map"}, read, evaluate
)
