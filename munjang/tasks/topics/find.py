"""Topics: what a pile of texts is about. Vectors are reduced and clustered, clusters named by their terms.

from munjang.tasks.topics import TopicConfig, find_topics
found = find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=20))
for topic in found.topics:
    print(topic.size, topic.label)
"""

from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.tasks.topics.changes import diversify_terms, reassign_outliers, reduce_topics
from munjang.tasks.topics.config import TopicConfig as TopicConfig  # here too: callers need both
from munjang.tasks.topics.groups import group
from munjang.tasks.topics.model import NO_TOPIC, Naming, TopicModel, build, own_similarity
from munjang.tasks.topics.reduce import reduce
from munjang.tasks.vectors import unit_vectors
from munjang.text.inputs import as_texts
from munjang.types import Floats, Ints
from munjang.vectors.similarity import BLOCK_ROWS


def find_topics(
    texts: Any,
    model: BiEncoder | None = None,
    config: TopicConfig | None = None,
    vectors: Any = None,
    progress: bool | None = None,
) -> TopicModel:
    """Find the topics of texts, the largest first. `vectors` are the texts' own, if known; else the model encodes.

    Without a model and without vectors the bundled model encodes. Texts of equal vectors come into one topic.

    >>> texts = ["My cat sleeps.", "A kitten naps.", "Banks fell.", "Shares rose."]
    >>> find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2))
    TopicModel(2 topics of 4 texts, 0 in none)
    """
    config, texts = config or TopicConfig(), as_texts(texts)
    if not texts:
        raise InputError("There are no texts; topics need at least one.")
    if config.diversity and model is None:
        raise InputError("diversity compares terms by their vectors: give the model too.")
    if model is None and vectors is None:
        model = BiEncoder.load()
    units_ND: Floats = unit_vectors(texts if vectors is None else vectors, model, progress=progress)
    if len(units_ND) != len(texts):
        raise InputError(f"There are {len(units_ND)} vectors for {len(texts)} texts.")
    if config.num_topics is not None and config.num_topics > len(texts):
        raise InputError(f"num_topics={config.num_topics}, but there are only {len(texts)} texts; ask for fewer.")
    group_of_N = _grouped(units_ND, config, progress)
    fingerprint = None if model is None else model.fingerprint
    found = _built(texts, group_of_N, units_ND, Naming(num_terms=0))
    if config.num_topics is not None and len(found.topics) > config.num_topics:
        found = reduce_topics(found, config.num_topics, units_ND)
    if config.outliers == "nearest":
        found = reassign_outliers(found, units_ND)
    naming = Naming(config.num_terms, config.max_words)
    found = build(texts, found.topic_of_N, found.similarity_N, found.sums_TD, naming, fingerprint, progress)
    return diversify_terms(found, model, config.diversity) if config.diversity and model is not None else found


def _grouped(units_ND: Floats, config: TopicConfig, progress: bool | None) -> Ints:
    is_alike = not np.ptp(units_ND, axis=0).any()
    if len(units_ND) < 3 or is_alike:  # nothing to cluster
        if is_alike and config.num_topics not in (None, 1):
            raise InputError(f"num_topics={config.num_topics}, but all texts are alike; ask for 1.")
        return np.arange(len(units_ND)) % (config.num_topics or 1)
    points = reduce(units_ND, config.reduce, config.dimension, config.seed)
    return group(points, config.cluster, config.num_topics, config.min_size, config.seed, progress)


def _built(texts: list[str], group_of_N: Ints, units_ND: Floats, naming: Naming) -> TopicModel:
    sums_GD = np.zeros((int(group_of_N.max()) + 1, units_ND.shape[1]), np.float32)
    rows = np.flatnonzero(group_of_N != NO_TOPIC)
    for start in range(0, len(rows), BLOCK_ROWS):  # a copy of all would not fit
        block = rows[start : start + BLOCK_ROWS]
        np.add.at(sums_GD, group_of_N[block], units_ND[block])
    return build(texts, group_of_N, own_similarity(units_ND, group_of_N, sums_GD), sums_GD, naming)
