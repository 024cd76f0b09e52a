"""Re-ranking: do the right ones of a query's candidates come first?

Candidates come with the data (rows of query, positive and negatives; rows of query, document and yes or no; a table
`candidates` in a retrieval folder: query id, document id, the retrieval's score), or a first stage finds them in the
folder's corpus. The order is the model's, or that of the model and the retrieval together, by weight, as in an index.
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
from munjang.evaluation.metrics.bootstrap import mean_of
from munjang.evaluation.metrics.ranking import rank_metrics, rank_rows
from munjang.vectors.similarity import PAIRWISE

Run = dict[str, dict[str, float]]  # scores by query id and document id
MAX_CANDIDATES = 1_000_000  # longer than any list of candidates


@dataclass(frozen=True)
class Candidates:
    """A retrieval set, and the documents of each query that are to be ranked; None: a first stage finds them."""

    data: Retrieval
    documents: dict[str, list[str]] | None  # ids by query id
    retrieved: Run | None = None  # what a retrieval said of them, where the data has it

    def __len__(self) -> int:
        return len(self.data)


def read(source: Any, settings: Settings) -> Candidates:
    """Read a retrieval folder, or rows."""
    if isinstance(source, Retrieval):
        return Candidates(source, None)
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        data = read_retrieval(source, settings.split, settings.max_rows)
        path = find(source, "candidates")
        return Candidates(data, None) if path is None else _stated(read_relevances(path), data)
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
    """Measure MAP over the whole list, MRR and nDCG at 10; and the same of the first stage before re-ranking."""
    data, documents, retrieved = candidates.data, candidates.documents, candidates.retrieved
    notes, before = list(data.notes), {}
    if settings.first_stage is not None:
        if documents is None:
            retrieved = search(settings.first_stage, data, settings.candidates, settings)
            documents = {query: list(found) for query, found in retrieved.items()}
            notes.append(f"the best {settings.candidates} documents of the first stage are ranked again")
        else:
            retrieved = _run(settings.first_stage, data, documents, settings)
        before = {f"before_{name}": value for name, value in _metrics(data, retrieved).items()}
    if documents is None:
        raise InputError(f"{data.name} has no candidates: a bi-encoder has to find them, --first-stage MODEL.")
    weight, note = _weight(model, data, retrieved, settings)
    notes += [note] if note else []
    run = _run(model, data, documents, settings, is_added=weight < 1)
    if retrieved is not None and weight < 1:
        run = {query: _added(found, retrieved[query], weight) for query, found in run.items()}
    by_query = rank_rows(data.relevances, run, [MAX_CANDIDATES], ["map"])[f"map@{MAX_CANDIDATES}"]
    return Measured(_metrics(data, run) | before, tuple(notes), mean_of(by_query))


def _weight(model: Any, data: Retrieval, retrieved: Run | None, settings: Settings) -> tuple[float, str]:
    """Return the model's weight in the final order, as set or as its folder states, and a note for readers."""
    set_to = settings.rerank_weight
    weight = set_to if set_to is not None else model.rerank_weight if kind_of(model) == "cross" else 1.0
    if weight == 1:
        return 1.0, ""
    if retrieved is not None:
        return weight, f"the re-ranker has a weight of {weight:g} in the order, the retrieval the rest"
    if set_to is not None:
        raise InputError(
            f"rerank_weight {set_to:g} leaves weight to the retrieval, and {data.name} has no scores of one; "
            "--first-stage MODEL gives them."
        )
    return 1.0, f"the re-ranker alone: it asks for a weight of {weight:g}, but there is no retrieval to have the rest"


def _added(found: dict[str, float], retrieved: dict[str, float], weight: float) -> dict[str, float]:
    """Score one query's candidates by both scores."""
    from munjang.index.rerank import added  # torch comes with it: not for what only reads

    both = added(np.array(list(found.values())), np.array([retrieved[name] for name in found]), weight)
    return dict(zip(found, both.tolist(), strict=True))


def _metrics(data: Retrieval, run: Run) -> dict[str, float]:
    whole = rank_metrics(data.relevances, run, [MAX_CANDIDATES], ["map"])[f"map@{MAX_CANDIDATES}"]
    return {"map": whole, **rank_metrics(data.relevances, run, [10], ["mrr", "ndcg"])}


def _run(
    model: Any, data: Retrieval, documents: dict[str, list[str]], settings: Settings, is_added: bool = False
) -> Run:
    """Score every query's candidates; by a cross-encoder's logits where the retrieval is added to them."""
    pairs = [(query, name) for query, names in documents.items() for name in names]
    queries, texts = [data.queries[query] for query, _ in pairs], [data.corpus[name] for _, name in pairs]
    if kind_of(model) == "cross":
        scores = cross_scores(model, queries, texts, settings, "Identity" if is_added else None)
    else:
        a_ND, b_ND = encode_queries(model, queries, settings), encode_documents(model, texts, settings)
        scores = PAIRWISE[model.similarity_name](a_ND, b_ND)
    run: Run = {query: {} for query in documents}
    for (query, name), score in zip(pairs, scores.tolist(), strict=True):
        run[query][name] = score
    return run


def _stated(given: Run, data: Retrieval) -> Candidates:
    """Return the candidates of the queries that are measured; those without any count as 0."""
    retrieved = {
        query: {name: score for name, score in given.get(query, {}).items() if name in data.corpus}
        for query in data.queries
    }
    return Candidates(data, {query: list(found) for query, found in retrieved.items()}, retrieved)


def _of_columns(examples: Examples) -> Candidates:
    """Read rows of query, positive and negatives; put rows of one query together."""
    queries, positives, *negatives = examples.texts
    judged: dict[str, dict[str, bool]] = {}
    for row, query in enumerate(queries):
        for column in negatives:
            judged.setdefault(query, {}).setdefault(column[row], False)
        judged.setdefault(query, {})[positives[row]] = True  # another row may know it as a negative
    return _candidates(examples.name, judged)


def _of_pairs(examples: Examples) -> Candidates:
    """Read rows of query, document, and yes or no."""
    judged: dict[str, dict[str, bool]] = {}
    for query, document, is_right in zip(*examples.texts, is_positive(examples).tolist(), strict=True):
        documents = judged.setdefault(query, {})
        documents[document] = is_right or documents.get(document, False)
    return _candidates(examples.name, judged)


def _candidates(name: str, judged: dict[str, dict[str, bool]]) -> Candidates:
    """Number documents so that of equal scores the wrong one comes first: equal scores for all gain nothing."""
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
