"""TopicModel: which texts belong together, what they are about, and where a new text belongs.

N texts, T topics, D dimension.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.display import table
from munjang.errors import InputError
from munjang.tasks.terms_of_groups import Terms, terms_of
from munjang.tasks.vectors import unit_vectors
from munjang.types import Floats, Ints
from munjang.vectors.similarity import BLOCK_ROWS, check_dimension, unit

NO_TOPIC = -1  # the topic of texts that belong to none
NUM_EXAMPLES = 3
NUM_LABEL_TERMS = 4


@dataclass(frozen=True)
class Topic:
    """The subject of a group of texts: its terms, the best first, and its most typical texts."""

    number: int
    size: int
    terms: Terms
    examples: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its first terms; a topic of only stop words has none."""
        return ", ".join(term for term, _ in self.terms[:NUM_LABEL_TERMS]) or "(no words)"


@dataclass(frozen=True)
class Assigned:
    """Topics of new texts and how near they are: the cosine to the topic's centre."""

    topic_of_N: Ints
    similarity_N: Floats


@dataclass(frozen=True)
class Naming:
    """The number of terms of a topic, and of words in a term."""

    num_terms: int = 10
    max_words: int = 1


@dataclass(frozen=True)
class TopicModel:
    """Topics of texts, the largest first. It holds no vectors of texts, only the sum of each topic's.

    found = find_topics(texts, model)
    found.topics[0].label, found.assign(["a new text"], model).topic_of_N
    """

    texts: list[str]
    topic_of_N: Ints
    similarity_N: Floats  # to the own topic's centre, see `merge_topics`; 0 for those of none
    sums_TD: Floats  # of the unit vectors of each topic
    topics: tuple[Topic, ...]
    naming: Naming = Naming()
    fingerprint: str | None = None  # of the encoder, if it is known

    @property
    def centres(self) -> Floats:
        """Unit vectors of the topics."""
        return unit(self.sums_TD)

    @property
    def num_outliers(self) -> int:
        """Texts that belong to no topic."""
        return int((self.topic_of_N == NO_TOPIC).sum())

    def assign(self, items: Any, model: BiEncoder | None = None, min_similarity: float = -1.0) -> Assigned:
        """Find the nearest topic of each new text or ready vector; -1 where its similarity is below `min_similarity`.

        Nearest by the topic's centre: a text that the topics were made of may have come into another group.
        """
        self.check_model(model)
        vectors = unit_vectors(items, model)
        if not len(vectors):
            return Assigned(np.zeros(0, np.int64), np.zeros(0, np.float32))
        if not self.topics:
            raise InputError("There are no topics: all texts were outliers. Make them with a smaller min_size.")
        check_dimension(vectors, self.sums_TD.shape[1], "texts to assign")
        scores_NT = vectors @ self.centres.T
        best_N = scores_NT.argmax(1)
        similarity_N = scores_NT[np.arange(len(scores_NT)), best_N]
        return Assigned(np.where(similarity_N >= min_similarity, best_N, NO_TOPIC), similarity_N)

    def __repr__(self) -> str:
        return f"TopicModel({len(self.topics)} topics of {len(self.texts):,} texts, {self.num_outliers:,} in none)"

    def _repr_html_(self) -> str:
        rows = [
            [str(each.number), f"{each.size:,}", ", ".join(term for term, _ in each.terms), *each.examples[:1]]
            for each in self.topics
        ]
        return table(repr(self), ["topic", "texts", "terms", "for example"], rows)

    def check_model(self, model: BiEncoder | None) -> None:
        """Refuse an encoder that is not the one the topics were made with."""
        if model is not None and self.fingerprint is not None and model.fingerprint != self.fingerprint:
            raise InputError(
                f"These topics were made with another model (fingerprint {self.fingerprint[:12]}, "
                f"not {model.fingerprint[:12]}); load that one."
            )


def own_similarity(vectors_ND: Any, group_of_N: Ints, sums_GD: Floats) -> Floats:
    """Return the cosine of each text to the centre of its own group; 0 for those of none."""
    similarity_N, centres_GD = np.zeros(len(group_of_N), np.float32), unit(sums_GD)
    rows = np.flatnonzero(group_of_N != NO_TOPIC)
    for start in range(0, len(rows), BLOCK_ROWS):  # a copy of all would not fit
        block = rows[start : start + BLOCK_ROWS]
        similarity_N[block] = np.einsum("nd,nd->n", unit_vectors(vectors_ND[block]), centres_GD[group_of_N[block]])
    return similarity_N


def split(texts: Sequence[str], topic_of_N: Ints, num_topics: int) -> list[list[str]]:
    """Return the texts of each topic, without those of none (-1)."""
    groups: list[list[str]] = [[] for _ in range(num_topics)]
    for text, topic in zip(texts, topic_of_N.tolist(), strict=True):
        if topic >= 0:
            groups[topic].append(text)
    return groups


def build(
    texts: list[str],
    group_of_N: Ints,
    similarity_N: Floats,
    sums_GD: Floats,
    naming: Naming,
    fingerprint: str | None = None,
    progress: bool | None = False,
) -> TopicModel:
    """Build a model from groups of texts: numbered by size, without empty ones, with terms and typical texts."""
    sizes_G = np.bincount(group_of_N[group_of_N >= 0], minlength=len(sums_GD))
    order = np.argsort(-sizes_G, kind="stable")[: int((sizes_G > 0).sum())]
    number_of_G = np.full(len(sums_GD) + 1, NO_TOPIC, np.int64)  # the last one is where -1 looks
    number_of_G[order] = np.arange(len(order))
    topic_of_N = number_of_G[group_of_N]
    terms = terms_of(split(texts, topic_of_N, len(order)), naming.num_terms, naming.max_words, progress)
    topics = []
    for number, each in enumerate(terms):
        rows = np.flatnonzero(topic_of_N == number)
        typical = rows[np.argsort(-similarity_N[rows], kind="stable")].tolist()
        examples = tuple(dict.fromkeys(texts[row] for row in typical[: 4 * NUM_EXAMPLES]))[:NUM_EXAMPLES]
        topics.append(Topic(number, len(rows), each, examples))
    return TopicModel(texts, topic_of_N, similarity_N, sums_GD[order], tuple(topics), naming, fingerprint)
