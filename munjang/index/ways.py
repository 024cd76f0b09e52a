"""Ways of searching an index: by words and by vectors of passages. To add one: a function and a line in WAYS.

Q queries, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from munjang.errors import InputError, unknown
from munjang.index.words import terms_of_queries
from munjang.stores.base import Found, Store
from munjang.stores.beside import NO_SPARSE, NO_TOKENS, token_scores
from munjang.stores.filters import Filter
from munjang.stores.scoring import best
from munjang.text.korean import has_hangul
from munjang.text.terms import query_terms
from munjang.types import Array, Floats
from munjang.vectors.sparse import SparseVectors

MIN_WORD_WEIGHT, MIN_EXACT_WORD_WEIGHT, MAX_WORD_WEIGHT = 0.1, 0.4, 0.6
NUM_TERMS_FOR_ALL = 30  # terms of a query at which words would count alone
MAX_EXACT_TOKEN_ROWS = 10_000  # of more, only what the other ways found is scored by its tokens: MaxSim reads them all


@dataclass(frozen=True)
class Asked:
    """The queries of a search: texts, and their vectors where the way needs them."""

    texts: Sequence[str] | None  # None: vectors were given
    vectors_QD: Floats | None = None
    sparse: SparseVectors | None = None
    tokens: Sequence[Array] | None = None  # token vectors of each query


Search: TypeAlias = Callable[[Store, Asked, int, Filter | None], list[Found]]


@dataclass(frozen=True)
class Way:
    """A way of searching, its weight among others, and why a store can't (None: it can)."""

    search: Search
    weight: Callable[[str], float]  # by the query
    lacks: Callable[[Store], str | None]
    needs_text: bool = True


def by_words(store: Store, asked: Asked, k: int, where: Filter | None) -> list[Found]:
    """Search by BM25 over the words of passages."""
    return store.search_terms(terms_of_queries(asked.texts or (), store.schema.facts), k, where)


def by_vectors(store: Store, asked: Asked, k: int, where: Filter | None) -> list[Found]:
    """Search by the similarity of vectors."""
    assert asked.vectors_QD is not None
    return store.search(asked.vectors_QD, k, where)


def by_sparse(store: Store, asked: Asked, k: int, where: Filter | None) -> list[Found]:
    """Search by dot products of sparse vectors."""
    assert asked.sparse is not None
    return store.search_sparse(asked.sparse, k, where)


def by_tokens(store: Store, asked: Asked, k: int, where: Filter | None) -> list[Found]:
    """Search by MaxSim of token vectors, all of them."""
    assert asked.tokens is not None
    return store.search_tokens(asked.tokens, k, where)


def second_stage(store: Store, asked: Asked, k: int, found: Sequence[list[Found]]) -> list[Found]:
    """Score by MaxSim what the other ways found of each query."""
    assert asked.tokens is not None
    orders = []
    for query_TD, *each in zip(asked.tokens, *found, strict=True):
        rows = store.get(list(dict.fromkeys(id for order in each for id in order.ids)), with_vectors=True)
        scores_N = token_scores([query_TD], rows.tokens or [])[0]
        has_tokens = np.flatnonzero(np.isfinite(scores_N))
        orders.append(best([rows.ids[row] for row in has_tokens.tolist()], scores_N[has_tokens], k))
    return orders


def searched(store: Store, names: Sequence[str], asked: Asked, k: int, where: Filter | None) -> dict[str, list[Found]]:
    """Search by each way; by tokens as a second stage where reading all of them would take long."""
    others = [name for name in names if name != "late"]
    found = {name: WAYS[name].search(store, asked, k, where) for name in others}
    if "late" in names:
        is_second = others and store.count() > MAX_EXACT_TOKEN_ROWS
        before = list(found.values())
        found["late"] = second_stage(store, asked, k, before) if is_second else by_tokens(store, asked, k, where)
    return {name: found[name] for name in names}


def _no_words(store: Store) -> str | None:
    return None if store.abilities.has_terms else "this engine has no BM25; a folder or memory: has"


def weight_of_words(query: str) -> float:
    """Return the weight of words against vectors: the more of them a query has, the more they count.

    A few English words say less to BM25 than to vectors; Korean ones, found by morphemes and pairs of syllables, say
    as much, and so do codes such as AB-1234. Chosen on the development halves of nine sets (docs/log.md).
    """
    terms = query_terms(query)
    lowest = MIN_EXACT_WORD_WEIGHT if has_hangul(query) or _is_code(terms) else MIN_WORD_WEIGHT
    return min(max(lowest, len(terms) / NUM_TERMS_FOR_ALL), MAX_WORD_WEIGHT)


def _is_code(terms: Sequence[str]) -> bool:
    """Tell whether half of the terms have digits."""
    num_with_digits = sum(any(map(str.isdigit, term)) for term in terms)
    return num_with_digits > 0 and 2 * num_with_digits >= len(terms)


def _no_sparse(store: Store) -> str | None:
    if not store.abilities.has_sparse:
        return "this engine has no sparse vectors; a folder or memory: has"
    return None if store.schema.sparse_dimension else NO_SPARSE


def _no_tokens(store: Store) -> str | None:
    if not store.abilities.has_tokens:
        return "this engine has no token vectors; a folder or memory: has"
    return None if store.schema.token_dimension else NO_TOKENS


def weight_of_vectors(query: str) -> float:
    """Return the weight of a model's way against words; of several models each counts as much as this."""
    return 1 - weight_of_words(query)


WAYS = {
    "words": Way(by_words, weight_of_words, _no_words),
    "dense": Way(by_vectors, weight_of_vectors, lambda store: None, needs_text=False),
    "sparse": Way(by_sparse, weight_of_vectors, _no_sparse),
    "late": Way(by_tokens, weight_of_vectors, _no_tokens),
}


def choose_ways(
    by: str | Sequence[str] | None, weights: Mapping[str, float] | None, store: Store, has_texts: bool
) -> list[str]:
    """Return the ways to search by; None takes all that this store and query allow."""
    if by is None:
        names = [n for n, way in WAYS.items() if way.lacks(store) is None and (has_texts or not way.needs_text)]
    else:
        names = list(dict.fromkeys([by] if isinstance(by, str) else by))
    if not names:
        raise InputError(f"Search by at least one way: {', '.join(WAYS)}.")
    for name in [*names, *(weights or ())]:
        if name not in WAYS:
            raise unknown("way to search", name, list(WAYS))
    for name in names:
        if (reason := WAYS[name].lacks(store)) is not None:
            raise InputError(f"Can't search by {name}: {reason}.")
        if WAYS[name].needs_text and not has_texts:
            raise InputError(f"Searching by {name} reads the query's text; give a text, not a vector.")
    if unused := [name for name in weights or () if name not in names]:
        raise InputError(f"A weight is given for {', '.join(unused)}, but the search is by {', '.join(names)}.")
    is_number = [0 <= weight < float("inf") for weight in (weights or {}).values()]
    if not all(is_number) or (weights and len(weights) == len(names) and not any(weights.values())):
        raise InputError(f"Weights must be numbers from 0 up, and one above 0, not {dict(weights or {})}.")
    return names


def weights_of(query: str, names: Sequence[str], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weight of each way for a query: as given, else what suits its language."""
    return {name: float((weights or {}).get(name, WAYS[name].weight(query))) for name in names}
