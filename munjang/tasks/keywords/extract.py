"""Keywords: the phrases of a text whose vectors are nearest to the text's own.

>>> from munjang import BiEncoder
>>> from munjang.tasks.keywords import KeywordConfig, keywords
>>> texts = ["Supervised learning infers a function from labelled training data."]
>>> keywords(texts, BiEncoder.load(), KeywordConfig(ngrams=(1, 2), pick="mmr"))[0][0].text
'supervised learning'
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.display import table
from munjang.errors import InputError
from munjang.progress import Progress
from munjang.tasks.keywords.candidates import Candidates, find_candidates, given_candidates
from munjang.tasks.keywords.config import KeywordConfig as KeywordConfig  # here too: callers need both
from munjang.text.inputs import as_texts
from munjang.types import Floats, Ints
from munjang.vectors.diversity import marginal, max_sum
from munjang.vectors.nearest import top_k
from munjang.vectors.similarity import check_dimension, check_vectors, unit

TEXT_WEIGHT = 3  # of the text against its seeds, as KeyBERT mixes them: (3 × text + seeds) / 4


@dataclass(frozen=True)
class Keyword:
    """A phrase of a text and its cosine to it."""

    text: str
    score: float


class Keywords(list[Keyword]):
    """Keywords of one text, the best first: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return table(f"{len(self)} keywords", ["keyword", "cosine"], [[each.text, each.score] for each in self])


def keywords(
    texts: Any,
    model: BiEncoder | None = None,
    config: KeywordConfig | None = None,
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
    seeds: Sequence[str] | Sequence[Sequence[str]] | None = None,
    vectors: Any = None,
    progress: bool | None = None,
) -> list[list[Keyword]]:
    """Find the keywords of each text, the best first; a text of only stop words has none.

    Every distinct candidate is encoded once, however many texts have it. `candidates` are given instead of found: one
    list for all texts, or one for each. `seeds` pull keywords towards them, for all texts or for each. `vectors` are
    the texts' own, if they are known already. Scores and keywords are those of KeyBERT with the same settings.

    >>> keywords(["서울시는 자전거 도로를 만든다."], config=KeywordConfig(top=1))[0][0].text
    '서울시'
    """
    config, texts, model = config or KeywordConfig(), as_texts(texts), model or BiEncoder.load()
    if candidates is None:
        found = find_candidates(texts, config.ngrams, config.stop_words, config.cut, config.min_texts, progress)
    else:
        found = given_candidates(texts, candidates, config.stop_words)
    if not found.phrases:
        return [Keywords() for _ in texts]
    # one call for texts and phrases: a text that is also a phrase is computed once, and batches are fuller
    encoded: Floats = model.encode([*(texts if vectors is None else ()), *found.phrases], progress=progress)
    ready = encoded[: len(texts)] if vectors is None else _checked(vectors, len(texts), model.dimension)
    steered = ready if seeds is None else _steered(model, ready, seeds)
    return pick_keywords(found, unit(steered), unit(encoded[-len(found.phrases) :]), config, progress)


def pick_keywords(
    found: Candidates, texts_ND: Floats, phrases_CD: Floats, config: KeywordConfig, progress: bool | None = False
) -> list[list[Keyword]]:
    """Pick keywords by the unit vectors of texts and of candidates.    N texts, C candidates, D dimension."""
    rows = list[list[Keyword]]()
    with Progress(len(texts_ND), "picking keywords", enabled=progress) as counter:
        for text_D, places in zip(texts_ND, found.of_texts, strict=True):
            units = phrases_CD[places]
            scores = units @ text_D
            picks = _picked(scores, units, config)
            # mmr picks the diverse before the near: as with the others, the nearest come first
            order = picks[np.argsort(-scores[picks], kind="stable")]
            rows.append(Keywords([Keyword(found.phrases[places[pick]], float(scores[pick])) for pick in order]))
            counter.advance()
    return rows


def _picked(scores_C: Floats, units_CD: Floats, config: KeywordConfig) -> Ints:
    if config.pick == "mmr":
        return marginal(scores_C, units_CD, config.top, config.diversity)
    if config.pick == "max_sum":
        return max_sum(scores_C, units_CD, config.top, config.num_candidates)
    return top_k(scores_C, config.top)


def _checked(vectors: Any, num_texts: int, dimension: int) -> Floats:
    array = check_vectors(vectors, "vectors of the texts")
    if len(array) != num_texts:
        raise InputError(f"There are {len(array)} vectors for {num_texts} texts.")
    check_dimension(array, dimension, "vectors")
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
