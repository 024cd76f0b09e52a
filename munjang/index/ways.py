"""Ways of searching an index: by words and by the vectors of passages. To add one: a function and a line in WAYS.

Q queries, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from munjang.errors import InputError, unknown
from munjang.index.words import terms_of_queries
from munjang.stores.base import Found, Store
from munjang.stores.filters import Filter
from munjang.text.korean import has_hangul
from munjang.types import Floats


@dataclass(frozen=True)
class Asked:
    """What is searched for: texts, and their vectors where the way needs them."""

    texts: Sequence[str] | None  # None: vectors were given
    vectors_QD: Floats | None


Search: TypeAlias = Callable[[Store, Asked, int, Filter | None], list[Found]]


@dataclass(frozen=True)
class Way:
    """A way of searching, its weight among others, and why a store can't (None: it can)."""

    search: Search
    weight: Callable[[str], float]  # by the query
    lacks: Callable[[Store], str | None]
    needs_text: bool = False
    needs_vectors: bool = False


def by_words(store: Store, asked: Asked, k: int, where: Filter | None) -> list[Found]:
    """Search by BM25 over the words of passages."""
    return store.search_terms(terms_of_queries(asked.texts or (), store.schema.facts), k, where)


def by_vectors(store: Store, asked: Asked, k: int, where: Filter | None) -> list[Found]:
    """Search by the similarity of vectors."""
    assert asked.vectors_QD is not None
    return store.search(asked.vectors_QD, k, where)


def _no_words(store: Store) -> str | None:
    return None if store.abilities.has_terms else "this engine has no BM25; a folder or memory: has"


def weight_of_words(query: str) -> float:
    """Return the weight of words against vectors: half for Korean, whose words are morphemes, less for others.

    Chosen on development queries of Korean law, Korean encyclopedia and English medicine (docs/log.md).
    """
    return 0.5 if has_hangul(query) else 0.3


WAYS = {
    "words": Way(by_words, weight_of_words, _no_words, needs_text=True),
    "dense": Way(by_vectors, lambda query: 1 - weight_of_words(query), lambda store: None, needs_vectors=True),
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
