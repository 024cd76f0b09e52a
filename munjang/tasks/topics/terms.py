"""What topics are about: their terms by class-based TF-IDF, Korean texts by their nouns, on request unlike each other.

T topics, C terms, D width.
"""

from collections.abc import Sequence

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.nn.similarity import unit
from munjang.tasks.diversity import marginal
from munjang.tasks.nouns import composed, has_hangul, nouns
from munjang.tasks.terms_of_groups import STOP_WORDS, class_terms
from munjang.types import Floats, Ints

Terms = tuple[tuple[str, float], ...]
POOL = 3  # so many times as many terms are looked at as are kept
NOUN = "noun"  # begins a number that stands for a Korean noun


def split(texts: Sequence[str], topic_of_N: Ints, num_topics: int) -> list[list[str]]:
    """The texts of each topic; those of none (-1) are left out."""
    groups: list[list[str]] = [[] for _ in range(num_topics)]
    for text, topic in zip(texts, topic_of_N.tolist(), strict=True):
        if topic >= 0:
            groups[topic].append(text)
    return groups


def terms_of(
    groups: Sequence[Sequence[str]], top: int, max_words: int = 1, progress: bool | None = False
) -> list[Terms]:
    """The best terms of each group of texts, with their weights.

    >>> terms_of([["a red apple", "an apple"], ["blue whales"]], top=1)
    [(('apple', ...),), (('blue', ...),)]
    """
    if top == 0:  # asked for while groups still change
        return [() for _ in groups]
    names: dict[str, str] = {}
    numbered = [_numbered(group, names, progress) for group in groups]
    words = {number: noun for noun, number in names.items()}
    found = class_terms(numbered, POOL * top, max_words=max_words)
    shown = [
        [(" ".join(words.get(word, word) for word in term.split(" ")), weight) for term, weight in row] for row in found
    ]
    # one letter or a bare number names nothing
    return [
        tuple((term, weight) for term, weight in row if len(term) > 1 and not term.isdigit())[:top] for row in shown
    ]


def _numbered(texts: Sequence[str], names: dict[str, str], progress: bool | None) -> list[str]:
    """Texts with Korean nouns as numbers: `class_terms` would cut them once more, without kiwipiepy into syllables."""
    texts = composed(texts)
    is_korean = [has_hangul(text) for text in texts]
    cut = iter(nouns([text for text, is_one in zip(texts, is_korean, strict=True) if is_one], progress))
    found = []
    for text, is_one in zip(texts, is_korean, strict=True):
        if is_one:
            kept = [noun for noun, _ in next(cut) if noun not in STOP_WORDS and len(noun) > 1]
            text = " ".join(names.setdefault(noun, f"{NOUN}{len(names)}") for noun in kept)
        found.append(text)
    return found


def diversify(terms: Sequence[Terms], centres_TD: Floats, model: BiEncoder, top: int, diversity: float) -> list[Terms]:
    """Of each topic's terms those that are near it and unlike each other (maximal marginal relevance)."""
    distinct = sorted({term for row in terms for term, _ in row})
    if not distinct:
        return list(terms)
    vectors_CD = unit(model.encode(distinct, progress=False))
    place = {term: number for number, term in enumerate(distinct)}
    picked = []
    for row, centre_D in zip(terms, centres_TD, strict=True):
        units = vectors_CD[[place[term] for term, _ in row]] if row else np.zeros((0, len(centre_D)), np.float32)
        picks = marginal(units @ centre_D, units, top, diversity)
        picked.append(tuple(row[pick] for pick in sorted(picks.tolist())))  # the heaviest first
    return picked
