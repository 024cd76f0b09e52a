"""Draw a corpus in two dimensions, with clusters and their words.    N passages, D dimension, K clusters."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from munjang.server.views import View
from munjang.tasks.terms_of_groups import STOP_WORDS
from munjang.types import Array, Floats, Ints, Value
from munjang.vectors.kmeans import kmeans
from munjang.vectors.principal import principal_components
from munjang.vectors.similarity import unit

SCAN_ROWS = 2000
MAX_SCANNED = 20_000  # passages that are read, so that a large corpus holds nobody up
MAX_PASSED = 200_000  # passages that are read where most are another key's
MAX_POINTS = 1500  # of those, evenly: what a browser draws without effort
MAX_CLUSTERS = 12  # colours that people tell apart
MAX_SHOWN_CHARS, MAX_FIELDS = 160, 16  # of a passage and each field of it
NUM_WORDS, MAX_VALUE_CHARS = 3, 24  # of a cluster, and of a value of the metadata among them
WORD = re.compile(r"[^\W\d_]+")
HANGUL = re.compile(r"[가-힣]")
# particles and endings, so that 바다는 and 바다를 are one word; a rough cut, for labels alone
ENDING = re.compile(r"(?<=[가-힣]{2})(에서는|으로|에서|에게|까지|부터|이다|은|는|이|가|을|를|의|에|로|와|과|도|만)$")
NOT_A_NOUN = re.compile(r"[가-힣]{2,}(다|게|고|면|지|며)$|[하한있없된않같산온간난준든좋많]다$|[가-힣](을|를|은|는)$")
MAX_WORD_FREQUENCY = 0.1  # a word in a larger part of the passages tells nothing


@dataclass(frozen=True)
class Sample:
    """Passages of an index, evenly chosen, with their full vectors."""

    vectors_ND: Floats
    passages: Sequence[tuple[str, str, str, Any]]  # id, document_id, text, metadata
    num_passages: int  # in the whole index


@dataclass(frozen=True)
class Point:
    """A passage at its place, both from -1 to 1."""

    id: str
    document_id: str
    text: str
    metadata: dict[str, Value]
    x: float
    y: float
    cluster: int


@dataclass(frozen=True)
class Cluster:
    """Passages that are close; `words` set them apart: values of their metadata, then words of their texts."""

    size: int
    words: list[str]


@dataclass(frozen=True)
class Landscape:
    """The map of the page; clusters by size, the largest first."""

    points: list[Point]
    clusters: list[Cluster]
    num_passages: int


def sample(view: View) -> Sample:
    """Choose at most MAX_POINTS of the first MAX_SCANNED passages that a key sees, evenly."""
    index = view.index
    vectors: list[Array] = []
    passages: list[tuple[str, str, str, Any]] = []
    for rows in islice(index.scan(SCAN_ROWS), MAX_PASSED // SCAN_ROWS):
        full = rows.vectors if rows.full_vectors is None else rows.full_vectors
        assert full is not None  # scan gives vectors
        seen = [row for row, metadata in enumerate(rows.metadata) if view.sees(metadata)]
        vectors.append(full[seen])
        passages += [(rows.ids[row], rows.document_ids[row], rows.texts[row], rows.metadata[row]) for row in seen]
        if len(passages) >= MAX_SCANNED:
            break
    if not passages:
        return Sample(np.zeros((0, index.store.schema.dimension), np.float32), [], 0)
    keep = np.unique(np.linspace(0, len(passages) - 1, min(len(passages), MAX_POINTS)).astype(int))
    vectors_ND = np.concatenate(vectors)[keep].astype(np.float32)
    if index.store.schema.metric == "cosine":  # whose length says nothing
        vectors_ND = unit(vectors_ND)
    return Sample(vectors_ND, [passages[at] for at in keep], view.count())


def draw(sample: Sample) -> Landscape:
    """Place and cluster passages and name the clusters; the same for the same passages."""
    number = len(sample.passages)
    if not number:
        return Landscape([], [], sample.num_passages)
    places_N2 = project(sample.vectors_ND)
    num_clusters = max(1, min(MAX_CLUSTERS, round((number / 2) ** 0.5)))
    clusters_N = by_size(kmeans(sample.vectors_ND, num_clusters, num_starts=4).clusters_N)
    points = [
        Point(id, document, text[:MAX_SHOWN_CHARS], cut(metadata), float(x), float(y), int(cluster))
        for (id, document, text, metadata), (x, y), cluster in zip(sample.passages, places_N2, clusters_N, strict=True)
    ]
    texts, metadata = [text for _, _, text, _ in sample.passages], [values for _, _, _, values in sample.passages]
    named = zip(shared(metadata, clusters_N), telling(texts, clusters_N), strict=True)
    words = [[*values, *(word for word in own if word not in values)][:NUM_WORDS] for values, own in named]
    sizes = np.bincount(clusters_N).tolist()
    return Landscape(points, [Cluster(*pair) for pair in zip(sizes, words, strict=True)], sample.num_passages)


def cut(metadata: Mapping[str, Value]) -> dict[str, Value]:
    """Cut metadata to what can be sent with every point."""
    pairs = islice(((name, value) for name, value in metadata.items() if value is not None), MAX_FIELDS)
    return {name: value[:MAX_SHOWN_CHARS] if isinstance(value, str) else value for name, value in pairs}


def project(vectors_ND: Floats) -> Floats:
    """Project to the two directions in which the vectors differ most, each scaled to -1 to 1.

    >>> project(np.array([[0.0, 1], [0, 3], [0, 5]], np.float32)).tolist()
    [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    """
    components = principal_components(vectors_ND.astype(np.float64), 2)
    places_N2 = np.zeros((len(vectors_ND), 2))
    places_N2[:, : components.shape[1]] = components
    reach = np.abs(places_N2).max(0)
    scaled: Floats = (places_N2 / np.where(reach > 1e-9, reach, np.inf)).astype(np.float32)
    return scaled + np.float32(0)  # no -0


def by_size(clusters_N: Ints) -> Ints:
    """Number clusters from 0, the largest first, none left out."""
    names, number_N, sizes = np.unique(clusters_N, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return rank[number_N]


def telling(texts: Sequence[str], clusters_N: Ints) -> list[list[str]]:
    """Find the words that tell clusters apart: passages with the word here, times the fraction of all that have it."""
    words = [words_of(text) for text in texts]
    overall = Counter(word for own in words for word in own)
    max_count = max(5, MAX_WORD_FREQUENCY * len(texts))
    chosen = []
    for cluster in range(int(clusters_N.max()) + 1):
        here = Counter(word for own, at in zip(words, clusters_N, strict=True) if at == cluster for word in own)
        scores = {
            word: count * count / overall[word]
            for word, count in here.items()
            if count >= 2 and overall[word] <= max_count
        }
        chosen.append(sorted(scores, key=lambda word: (-scores[word], word))[:NUM_WORDS])
    return chosen


def shared(metadata: Sequence[Mapping[str, Value]], clusters_N: Ints) -> list[list[str]]:
    """Find values of the metadata that a third of a cluster has, and three times as often as all have."""
    values = [{(name, value) for name, value in row.items() if isinstance(value, str)} for row in metadata]
    overall = Counter(value for row in values for value in row)
    chosen = []
    for cluster in range(int(clusters_N.max()) + 1):
        own = [row for row, at in zip(values, clusters_N, strict=True) if at == cluster]
        here = Counter(value for row in own for value in row)
        minimum = {value: max(1 / 3, 3 * overall[value] / len(values)) * len(own) for value in here}
        chosen.append([value[1][:MAX_VALUE_CHARS] for value, count in here.most_common() if count >= minimum[value]])
    return chosen


def words_of(text: str) -> set[str]:
    """Return words that may name something: two syllables of Hangul, or four letters."""
    stems = {ENDING.sub("", word.lower()) for word in WORD.findall(text)}
    names = {word for word in stems if len(word) >= (2 if HANGUL.search(word) else 4) and not NOT_A_NOUN.match(word)}
    return names - STOP_WORDS
