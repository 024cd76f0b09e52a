"""Change topics after they were found: merge them, reduce their number, reassign outliers, choose other terms.

Each gives a new model, numbered by size.    N texts, T topics, D dimension.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.tasks.terms_of_groups import POOL_FACTOR, Terms, terms_of
from munjang.tasks.topics.model import NO_TOPIC, TopicModel, build, own_similarity, split
from munjang.tasks.vectors import unit_vectors
from munjang.types import Floats, Ints
from munjang.vectors.diversity import marginal
from munjang.vectors.similarity import check_dimension, unit


def merge_topics(found: TopicModel, groups: Sequence[Sequence[int]], vectors: Any = None) -> TopicModel:
    """Merge topics: `merge_topics(found, [[0, 3], [1, 4, 5]])`.

    With the `vectors` of all texts `similarity_N` is measured anew; without, it stays that to the centres before.

    Raises InputError for a topic that does not exist, or is in two groups.

    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell.", "Stocks rose."]
    >>> found = find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2))
    >>> merge_topics(found, [[0, 1]])
    TopicModel(1 topics of 4 texts, 0 in none)
    """
    vectors = _checked(found, vectors)
    target_T = np.arange(len(found.topics))
    seen: set[int] = set()
    for group in groups:
        for number in group:
            if not 0 <= number < len(found.topics):
                raise InputError(f"There is no topic {number}; they are numbered 0 to {len(found.topics) - 1}.")
            if number in seen:
                raise InputError(f"Topic {number} is named twice; it can go into one group only.")
            seen.add(number)
            target_T[number] = group[0]
    return _moved(found, target_T, vectors)


def reduce_topics(found: TopicModel, num_topics: int, vectors: Any = None) -> TopicModel:
    """Merge the two topics whose texts are most alike on average until at most so many are left.

    `vectors` are as of `merge_topics`.

    Raises InputError for fewer than one topic.

    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell.", "Stocks rose."]
    >>> len(reduce_topics(find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2)), 1).topics)
    1
    """
    vectors = _checked(found, vectors)
    if num_topics < 1:
        raise InputError(f"num_topics must be at least 1, not {num_topics}.")
    target_T = np.arange(len(found.topics))
    sums_TD = found.sums_TD.astype(np.float64)
    sizes_T = np.array([topic.size for topic in found.topics], np.float64)
    alike_TT = sums_TD @ sums_TD.T / np.outer(sizes_T, sizes_T)  # the mean cosine of two topics' texts
    np.fill_diagonal(alike_TT, -np.inf)
    for _ in range(len(found.topics) - num_topics):
        kept, gone = sorted(divmod(int(alike_TT.argmax()), len(alike_TT)))
        target_T[target_T == gone] = kept
        sums_TD[kept] += sums_TD[gone]
        sizes_T[kept] += sizes_T[gone]
        is_left = np.isin(np.arange(len(sizes_T)), target_T)
        is_left[kept] = False
        row = np.where(is_left, sums_TD @ sums_TD[kept] / (sizes_T * sizes_T[kept]), -np.inf)
        alike_TT[kept], alike_TT[:, kept] = row, row
        alike_TT[gone], alike_TT[:, gone] = -np.inf, -np.inf
    return _moved(found, target_T, vectors)


def reassign_outliers(
    found: TopicModel, vectors: Any = None, model: BiEncoder | None = None, min_similarity: float = -1.0
) -> TopicModel:
    """Assign outliers to their nearest topics. `vectors` are of all texts; else the model encodes the outliers.

    Topics move towards what they get: with `vectors` all of `similarity_N` is measured anew, else it is that before.

    Raises InputError without vectors and model, where there are outliers.

    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell.", "Stocks rose."]
    >>> found = find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2))
    >>> reassign_outliers(found, model=BiEncoder.load()).num_outliers
    0
    """
    rows = np.flatnonzero(found.topic_of_N == NO_TOPIC)
    if not len(rows) or not found.topics:
        return found
    if vectors is None and model is None:
        raise InputError("To reassign outliers give the vectors of all texts, or the model that makes them.")
    found.check_model(model)
    vectors = _checked(found, vectors)
    outliers = [found.texts[row] for row in rows] if vectors is None else vectors[rows]
    units = unit_vectors(outliers, model)
    given = found.assign(units, None, min_similarity)
    is_given = given.topic_of_N != NO_TOPIC
    topic_of_N, similarity_N, sums_TD = found.topic_of_N.copy(), found.similarity_N.copy(), found.sums_TD.copy()
    topic_of_N[rows] = given.topic_of_N
    similarity_N[rows[is_given]] = given.similarity_N[is_given]
    np.add.at(sums_TD, given.topic_of_N[is_given], units[is_given])
    if vectors is not None:
        similarity_N = own_similarity(vectors, topic_of_N, sums_TD)
    return build(found.texts, topic_of_N, similarity_N, sums_TD, found.naming, found.fingerprint)


def diversify_terms(found: TopicModel, model: BiEncoder, diversity: float) -> TopicModel:
    """Choose terms that are unlike each other, by maximal marginal relevance; 0 keeps the nearest.

    Raises InputError for another model than the topics were found with.

    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["My old cat sleeps.", "My big cat sleeps.", "A bank fell.", "A big bank fell."]
    >>> found = find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2, num_terms=1))
    >>> [len(topic.terms) for topic in diversify_terms(found, BiEncoder.load(), 0.3).topics]
    [1, 1]
    """
    found.check_model(model)
    groups = split(found.texts, found.topic_of_N, len(found.topics))
    pool = terms_of(groups, POOL_FACTOR * found.naming.num_terms, found.naming.max_words)
    terms = _diverse(pool, found.centres, model, found.naming.num_terms, diversity)
    topics = (replace(topic, terms=each) for topic, each in zip(found.topics, terms, strict=True))
    return replace(found, topics=tuple(topics))


def _diverse(terms: Sequence[Terms], centres_TD: Floats, model: BiEncoder, top: int, diversity: float) -> list[Terms]:
    """Pick terms of each topic that are near it and unlike each other (maximal marginal relevance)."""
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


def _checked(found: TopicModel, vectors: Any) -> Floats | None:
    if vectors is None:
        return None
    array = np.asarray(vectors)
    if len(array) != len(found.texts):
        raise InputError(f"There are {len(array)} vectors for {len(found.texts)} texts.")
    check_dimension(array, found.sums_TD.shape[1], "vectors")
    return array


def _moved(found: TopicModel, target_T: Ints, vectors_ND: Floats | None) -> TopicModel:
    moved_T = np.append(target_T, NO_TOPIC)  # the last one is where -1 looks
    sums_TD = np.zeros_like(found.sums_TD)
    np.add.at(sums_TD, target_T, found.sums_TD)
    topic_of_N = moved_T[found.topic_of_N]
    similarity_N = found.similarity_N if vectors_ND is None else own_similarity(vectors_ND, topic_of_N, sums_TD)
    return build(found.texts, topic_of_N, similarity_N, sums_TD, found.naming, found.fingerprint)
