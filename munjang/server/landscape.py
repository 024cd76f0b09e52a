"""Draw a corpus in two dimensions, with clusters and their words.    N passages, D dimension, K clusters."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from munjang.index import Index
from munjang.tasks.terms_of_groups import STOP_WORDS
from munjang.types import Array, Floats, Ints, Value
from munjang.vectors.kmeans import kmeans
from munjang.vectors.principal import principal_components
from munjang.vectors.similarity import unit

MAX_SCANNED = 20_000  # passages that are read, so that a large corpus holds nobody up
MAX_POINTS = 1500  # of those, evenly: what a browser draws without effort
MAX_CLUSTERS = 12  # colours that people tell apart
SHOWN_CHARS, MAX_FIELDS = 160, 16  # of a passage and each field of it
NUM_WORDS, SHOWN_NAME = 3, 24  # of a cluster, and characters of one that metadata gives
WORD = re.compile(r"[^\W\d_]+")
HANGUL = re.compile(r"[가-힣]")
# particles and endings, so that 바다는 and 바다를 are one word; a rough cut, for labels alone
ENDING = re.compile(r"(?<=[가-힣]{2})(에서는|으로|에서|에게|까지|부터|이다|은|는|이|가|을|를|의|에|로|와|과|도|만)$")
NO_NOUN = re.compile(r"[가-힣]{2,}(다|게|고|면|지|며)$|[하한있없된않같산온간난준든좋많]다$|[가-힣](을|를|은|는)$")
COMMON = 0.1  # a word in more passages than this share tells nothing


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
    """Passages that are close, and what sets them apart: metadata that they share, and words."""

    size: int
    words: list[str]


@dataclass(frozen=True)
class Landscape:
    """What the page's map shows; clusters by size, the largest first."""

    points: list[Point]
    clusters: list[Cluster]
    num_passages: int


def sample(index: Index) -> Sample:
    """At most MAX_POINTS of the first MAX_SCANNED passages."""
    vectors: list[Array] = []
    passages: list[tuple[str, str, str, Any]] = []
    for rows in islice(index.scan(2000), MAX_SCANNED // 2000):
        full = rows.vectors if rows.full_vectors is None else rows.full_vectors
        assert full is not None  # scan gives vectors
        vectors.append(full)
        passages += zip(rows.ids, rows.document_ids, rows.texts, rows.metadata, strict=True)
    if not passages:
        return Sample(np.zeros((0, index.store.schema.dimension), np.float32), [], 0)
    keep = np.unique(np.linspace(0, len(passages) - 1, min(len(passages), MAX_POINTS)).astype(int))
    vectors_ND = np.concatenate(vectors)[keep].astype(np.float32)
    if index.store.schema.metric == "cosine":  # whose length says nothing
        vectors_ND = unit(vectors_ND)
    return Sample(vectors_ND, [passages[at] for at in keep], index.count())


def draw(found: Sample) -> Landscape:
    """Places, clusters and words; the same for the same passages."""
    number = len(found.passages)
    if not number:
        return Landscape([], [], found.num_passages)
    places_N2 = project(found.vectors_ND)
    num_clusters = max(1, min(MAX_CLUSTERS, round((number / 2) ** 0.5)))
    clusters_N = by_size(kmeans(found.vectors_ND, num_clusters, num_starts=4).clusters_N)
    points = [
        Point(id, document, text[:SHOWN_CHARS], cut(metadata), float(x), float(y), int(cluster))
        for (id, document, text, metadata), (x, y), cluster in zip(found.passages, places_N2, clusters_N, strict=True)
    ]
    texts, metadata = [text for _, _, text, _ in found.passages], [each for _, _, _, each in found.passages]
    named = zip(shared(metadata, clusters_N), telling(texts, clusters_N), strict=True)
    words = [[*values, *(word for word in own if word not in values)][:NUM_WORDS] for values, own in named]
    sizes = np.bincount(clusters_N).tolist()
    return Landscape(points, [Cluster(*each) for each in zip(sizes, words, strict=True)], found.num_passages)


def cut(metadata: Mapping[str, Value]) -> dict[str, Value]:
    """Metadata small enough to be sent with every point."""
    some = islice(((name, value) for name, value in metadata.items() if value is not None), MAX_FIELDS)
    return {name: value[:SHOWN_CHARS] if isinstance(value, str) else value for name, value in some}


def project(vectors_ND: Floats) -> Floats:
    """The two directions in which the vectors differ most, each scaled to -1 to 1.

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
    """Numbers from 0, the largest cluster first, none left out."""
    names, place_N, sizes = np.unique(clusters_N, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return rank[place_N]


def telling(texts: Sequence[str], clusters_N: Ints) -> list[list[str]]:
    """The words of each cluster that others have least: passages with the word here, times the share of all with it."""
    words = [words_of(text) for text in texts]
    overall = Counter(word for each in words for word in each)
    most = max(5, COMMON * len(texts))
    found = []
    for cluster in range(int(clusters_N.max()) + 1):
        here = Counter(word for each, own in zip(words, clusters_N, strict=True) if own == cluster for word in each)
        scores = {
            word: count * count / overall[word] for word, count in here.items() if count >= 2 and overall[word] <= most
        }
        found.append(sorted(scores, key=lambda word: (-scores[word], word))[:NUM_WORDS])
    return found


def shared(metadata: Sequence[Mapping[str, Value]], clusters_N: Ints) -> list[list[str]]:
    """Texts of the metadata that at least a third of a cluster has, and three times as often as all have."""
    values = [{(name, value) for name, value in each.items() if isinstance(value, str)} for each in metadata]
    overall = Counter(value for each in values for value in each)
    found = []
    for cluster in range(int(clusters_N.max()) + 1):
        own = [each for each, at in zip(values, clusters_N, strict=True) if at == cluster]
        here = Counter(value for each in own for value in each)
        least = {value: max(1 / 3, 3 * overall[value] / len(values)) * len(own) for value in here}
        found.append([value[1][:SHOWN_NAME] for value, count in here.most_common() if count >= least[value]])
    return found


def words_of(text: str) -> set[str]:
    """Words that may name something: two syllables of Hangul, or four letters."""
    found = {ENDING.sub("", word.lower()) for word in WORD.findall(text)}
    named = {word for word in found if len(word) >= (2 if HANGUL.search(word) else 4) and not NO_NOUN.match(word)}
    return named - STOP_WORDS
