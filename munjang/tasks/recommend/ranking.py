"""Items like this one, items for what somebody likes, items for a need in words; alike or diverse.

>>> from munjang import BiEncoder
>>> from munjang.tasks.recommend import Items, RecommendConfig, recommend
>>> stories = ["A detective hunts a killer in Seoul.", "An inspector solves a murder.", "Recipes for bread and cake."]
>>> items = Items.of_texts(stories, BiEncoder.load(), ids=["seoul", "inspector", "bread"])
>>> [item.id for item in recommend(items, likes=["seoul"], config=RecommendConfig(k=1))]
['inspector']
>>> [item.id for item in recommend(items, need="집에서 굽는 빵", config=RecommendConfig(k=1))]
['bread']

L likes, D dimension, P candidates. `items` may be an Index too.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.index import Index
from munjang.tasks.keywords.extract import KeywordConfig, keywords
from munjang.tasks.recommend.catalogue import Candidates, Catalogue, IndexItems
from munjang.tasks.recommend.config import RecommendConfig
from munjang.types import Doubles, Floats, Ints
from munjang.vectors.diversity import determinantal, marginal
from munjang.vectors.similarity import unit


@dataclass(frozen=True)
class Recommendation:
    """An item, and why."""

    id: str
    text: str
    score: float  # how relevant it is; higher is better
    because: str | None  # the like that it is nearest to; None: the need
    keywords: tuple[str, ...] = ()  # of its text, where `explain` has found them


@dataclass(frozen=True)
class Taste:
    """Directions that are wanted, how much each counts, and directions that are not."""

    likes_LD: Floats
    weights_L: Doubles
    dislikes_MD: Floats

    def relevance(self, units_ND: Floats, config: RecommendConfig) -> Doubles:
        """Score items by their cosine to likes, on average or to the nearest, less that to dislikes."""
        cosines_NL = (units_ND @ self.likes_LD.T).astype(np.float64)
        found_N = COMBINE[config.combine](cosines_NL, self.weights_L)
        if len(self.dislikes_MD):
            nearest_N = (units_ND @ self.dislikes_MD.T).max(1).astype(np.float64)
            found_N = found_N - config.dislike_weight * np.maximum(nearest_N, 0)
        return found_N


def recommend(
    items: Catalogue | Index,
    likes: Iterable[Any] = (),
    dislikes: Iterable[Any] = (),
    need: str | None = None,
    config: RecommendConfig | None = None,
    exclude: Iterable[Any] = (),
) -> list[Recommendation]:
    """Recommend items for liked (the oldest first) and disliked ids, for a need in words, or for both.

    Ids count as text, 1 as "1". What is liked, disliked or in `exclude` is never recommended. A need counts as much
    as all likes together.

    Returns Recommendation records, the best first. Raises InputError for an id that is not among the items, or where
    neither likes nor a need are given.

    >>> from munjang.tasks.recommend import Items
    >>> items = Items.of_vectors([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ids=["a", "b", "c"])
    >>> recommend(items, likes=["a"], dislikes=["c"])[0].id
    'b'
    """
    config = config or RecommendConfig()
    catalogue = IndexItems(items) if isinstance(items, Index) else items
    likes, dislikes, exclude = _ids("likes", likes), _ids("dislikes", dislikes), _ids("exclude", exclude)
    _check(likes, dislikes, need)
    taste = _taste(catalogue, likes, dislikes, need, config)
    seen = {*likes, *dislikes, *exclude}
    number = max(config.candidates, config.k) + len(seen)
    found = catalogue.candidates(taste.likes_LD, lambda units_ND: taste.relevance(units_ND, config), number)
    relevance_P = taste.relevance(found.vectors_PD, config)
    order = _best_of_each(found, relevance_P, seen)
    picked = PICKS[config.pick](
        relevance_P[order].astype(np.float32), found.vectors_PD[order], config.k, config.diversity
    )
    rows = order[picked].tolist()
    nearest_P = (found.vectors_PD @ taste.likes_LD.T).argmax(1)
    return [
        Recommendation(found.ids[row], found.texts[row], float(relevance_P[row]), [*likes, None][nearest_P[row]])
        for row in rows
    ]


def similar(items: Catalogue | Index, id: str, k: int = 10) -> list[Recommendation]:
    """Find items like this one, the nearest first.

    Raises InputError for an id that is not among the items.

    >>> from munjang.tasks.recommend import Items
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell."]
    >>> items = Items.of_texts(texts, BiEncoder.load(), ids=["a", "b", "c"])
    >>> [item.id for item in similar(items, "a", k=1)]
    ['b']
    """
    return recommend(items, [id], config=RecommendConfig(k=k, diversity=0.0))


def explain(
    found: Sequence[Recommendation],
    model: BiEncoder,
    need: str | None = None,
    config: KeywordConfig | None = None,
) -> list[Recommendation]:
    """Add keywords of each item's text, pulled towards the need where there is one.

    Returns copies of what was found.

    >>> from munjang.tasks.recommend import Items, RecommendConfig
    >>> items = Items.of_texts(["Recipes for bread.", "A murder in Seoul."], BiEncoder.load())
    >>> found = recommend(items, need="how to bake bread", config=RecommendConfig(k=1))
    >>> "bread" in explain(found, BiEncoder.load())[0].keywords
    True
    """
    rows = keywords(
        [each.text for each in found],
        model,
        config or KeywordConfig(top=3, pick="mmr", diversity=0.3),
        seeds=None if need is None else [need],
        progress=False,
    )
    return [replace(each, keywords=tuple(word.text for word in words)) for each, words in zip(found, rows, strict=True)]


def _ids(name: str, given: Iterable[Any]) -> list[str]:
    if isinstance(given, str):
        raise InputError(f"{name} is a list of ids, [{given!r}] for one.")
    return [str(id) for id in given]


def _check(likes: Sequence[str], dislikes: Sequence[str], need: str | None) -> None:
    if not likes and need is None:
        raise InputError("Recommended for whom? Give the ids of items that are liked, or a need in words.")
    if need is not None and not need.strip():
        raise InputError("The need is empty; say in words what is looked for.")
    both = sorted(set(likes) & set(dislikes))
    if both:
        raise InputError(f"{both[0]!r} is liked and disliked; leave it out of one of them.")


def _taste(
    catalogue: Catalogue, likes: Sequence[str], dislikes: Sequence[str], need: str | None, config: RecommendConfig
) -> Taste:
    vectors_LD = catalogue.vectors(likes) if likes else None
    ages = np.arange(len(likes) - 1, -1, -1)
    weights_L = np.ones(len(likes)) if config.half_life is None else 0.5 ** (ages / config.half_life)
    if need is not None:
        if catalogue.model is None:
            raise InputError("A need in words takes a model; give the items one, or ids that are liked.")
        need_1D = unit(catalogue.model.encode_query([need], progress=False))
        vectors_LD = need_1D if vectors_LD is None else np.concatenate([vectors_LD, need_1D])
        weights_L = np.append(weights_L, weights_L.sum() if len(likes) else 1.0)
    assert vectors_LD is not None
    return Taste(vectors_LD, weights_L, catalogue.vectors(dislikes) if dislikes else vectors_LD[:0])


def _best_of_each(found: Candidates, relevance_P: Doubles, seen: set[str]) -> Ints:
    """Order rows by relevance, one an item, without those that were seen."""
    rows, taken = [], set(seen)
    for row in np.argsort(-relevance_P, kind="stable").tolist():
        if found.ids[row] not in taken:
            taken.add(found.ids[row])
            rows.append(row)
    return np.array(rows, np.int64)


def _mean(cosines_NL: Doubles, weights_L: Doubles) -> Doubles:
    return cosines_NL @ weights_L / weights_L.sum()


def _nearest(cosines_NL: Doubles, weights_L: Doubles) -> Doubles:
    return (cosines_NL * (weights_L / weights_L.max())).max(1)


COMBINE: dict[str, Callable[[Doubles, Doubles], Doubles]] = {"mean": _mean, "nearest": _nearest}
PICKS: dict[str, Callable[[Floats, Floats, int, float], Ints]] = {"mmr": marginal, "determinantal": determinantal}
