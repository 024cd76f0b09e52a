"""Keywords: the phrases of a text whose vectors are nearest to the text's own.

>>> from munjang.tasks.keywords import KeywordConfig, keywords
>>> keywords(model, ["..."], KeywordConfig(ngrams=(1, 2), pick="mmr"))
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError, unknown
from munjang.nn.similarity import check_vectors, unit
from munjang.options import option
from munjang.tasks.candidates import CUTS, Candidates, check_ngrams, find_candidates, given_candidates
from munjang.tasks.diversity import marginal, max_sum, nearest
from munjang.text.inputs import as_texts
from munjang.types import Floats, Ints

TEXT_WEIGHT = 3  # of the text against its seeds, as KeyBERT mixes them: (3 × text + seeds) / 4
PICKS = ("nearest", "mmr", "max_sum")


@dataclass(frozen=True, kw_only=True)
class KeywordConfig:
    """What keywords to look for. Defaults are KeyBERT's."""

    top: int = option("keywords of each text", 5)
    ngrams: tuple[int, int] = option("words of a keyword: fewest and most", (1, 1))
    cut: Literal["auto", "words", "nouns"] = option(
        "candidates: words, Korean nouns, or (auto) nouns where a text has Hangul", "auto"
    )
    stop_words: str | Collection[str] = option("words that are no candidates: english or none", "english")
    min_texts: int = option("leave out candidates that fewer texts have", 1)
    pick: Literal["nearest", "mmr", "max_sum"] = option(
        "the nearest; or near and unlike each other: by maximal marginal relevance, or max-sum distance", "nearest"
    )
    diversity: float = option("of mmr: 0 is the nearest, 1 the most unlike", 0.5)
    num_candidates: int = option("of max_sum: choose among so many of the nearest", 20)

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError(f"top must be at least 1, not {self.top}.")
        check_ngrams(self.ngrams)
        if self.cut not in CUTS:
            raise unknown("way to cut texts", self.cut, CUTS)
        if self.pick not in PICKS:
            raise unknown("way to pick keywords", self.pick, PICKS)
        if not 0 <= self.diversity <= 1:
            raise InputError(f"diversity must be between 0 and 1, not {self.diversity}.")
        if self.pick == "max_sum" and self.num_candidates < self.top:
            raise InputError(f"num_candidates ({self.num_candidates}) must be at least top ({self.top}).")


@dataclass(frozen=True)
class Keyword:
    """A phrase of a text and its cosine to it."""

    text: str
    score: float


def keywords(
    model: BiEncoder,
    texts: Any,
    config: KeywordConfig | None = None,
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
    seeds: Sequence[str] | Sequence[Sequence[str]] | None = None,
    vectors: Any = None,
    progress: bool | None = None,
) -> list[list[Keyword]]:
    """The keywords of each text, the best first; a text of only stop words has none.

    Every distinct candidate is encoded once, however many texts have it. `candidates` are given instead of found: one
    list for all texts, or one for each. `seeds` pull keywords towards them, for all texts or for each. `vectors` are
    the texts' own, if they are known already. Scores and keywords are those of KeyBERT with the same settings.
    """
    config, texts = config or KeywordConfig(), as_texts(texts)
    if candidates is None:
        found = find_candidates(texts, config.ngrams, config.stop_words, config.cut, config.min_texts)
    else:
        found = given_candidates(texts, candidates, config.stop_words)
    if not found.phrases:
        return [[] for _ in texts]
    # one call for texts and phrases: a text that is also a phrase is computed once, and batches are fuller
    encoded: Floats = model.encode([*(texts if vectors is None else ()), *found.phrases], progress=progress)
    ready = encoded[: len(texts)] if vectors is None else _checked(vectors, len(texts), model.dimension)
    steered = ready if seeds is None else _steered(model, ready, seeds)
    return pick_keywords(found, unit(steered), unit(encoded[-len(found.phrases) :]), config)


def pick_keywords(
    found: Candidates, texts_ND: Floats, phrases_CD: Floats, config: KeywordConfig
) -> list[list[Keyword]]:
    """Keywords from unit vectors of texts and of candidates.    N texts, C candidates, D width."""
    rows = []
    for text_D, places in zip(texts_ND, found.of_texts, strict=True):
        units = phrases_CD[places]
        scores = units @ text_D
        picks = _picked(scores, units, config)
        # mmr picks the diverse before the near: as with the others, the nearest come first
        order = picks[np.argsort(-scores[picks], kind="stable")]
        rows.append([Keyword(found.phrases[places[pick]], float(scores[pick])) for pick in order])
    return rows


def _picked(scores_C: Floats, units_CD: Floats, config: KeywordConfig) -> Ints:
    if config.pick == "mmr":
        return marginal(scores_C, units_CD, config.top, config.diversity)
    if config.pick == "max_sum":
        return max_sum(scores_C, units_CD, config.top, config.num_candidates)
    return nearest(scores_C, config.top)


def _checked(vectors: Any, num_texts: int, width: int) -> Floats:
    array = check_vectors(vectors, "vectors of the texts")
    if len(array) != num_texts:
        raise InputError(f"There are {len(array)} vectors for {num_texts} texts.")
    if array.shape[1] != width:
        raise InputError(
            f"The vectors have {array.shape[1]} dimensions, but this model's have {width}; are they of another model?"
        )
    return array


def _steered(model: BiEncoder, vectors_ND: Floats, seeds: Sequence[Any]) -> Floats:
    if not len(seeds):
        raise InputError("There are no seeds; give some words, or leave seeds out.")
    is_shared = isinstance(seeds[0], str)
    rows = [as_texts(seeds, "seeds")] if is_shared else [as_texts(row, "seeds") for row in seeds]
    if not is_shared and len(rows) != len(vectors_ND):
        raise InputError(f"There are {len(rows)} lists of seeds for {len(vectors_ND)} texts; give one for each.")
    distinct = list(dict.fromkeys(seed for row in rows for seed in row))
    of_seed = dict(zip(distinct, model.encode(distinct, progress=False), strict=True))
    # a text without seeds of its own stays where it is
    means = [np.mean([of_seed[seed] for seed in row], 0) if row else None for row in rows]
    means = means * len(vectors_ND) if is_shared else means
    moved = [
        row if mean is None else (TEXT_WEIGHT * row + mean) / (TEXT_WEIGHT + 1)
        for row, mean in zip(vectors_ND, means, strict=True)
    ]
    return np.stack(moved).astype(np.float32)
