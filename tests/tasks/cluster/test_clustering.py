"""Clusters: heaps are found by every method; agglomerative as scikit-learn on all distances."""

import tracemalloc

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering

from munjang.errors import InputError
from munjang.tasks.cluster import clustering as module
from munjang.tasks.cluster.clustering import METHODS, cluster
from munjang.tasks.cluster.config import ClusterConfig
from munjang.tasks.cluster.groups import groups_of, typical
from munjang.types import Floats, Ints
from munjang.vectors.similarity import unit
from tests.tasks.paraphrases.test_mining import near


def heaps(sizes: tuple[int, ...] = (30, 20, 12), width: int = 24) -> tuple[Floats, Ints]:
    random = np.random.default_rng(0)
    centres = 4 * random.normal(size=(len(sizes), width))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return (centres[labels] + random.normal(size=(len(labels), width)) / 2).astype(np.float32), labels


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_heaps(method: str) -> None:
    vectors, labels = heaps()
    order = np.random.default_rng(1).permutation(len(labels))
    config = ClusterConfig(method=method, num_clusters=3, min_size=5, threshold=0.7)  # type: ignore[arg-type]
    found = cluster(vectors[order], config=config)
    assert found.labels_N.tolist() == labels[order].tolist()  # the largest is 0
    assert found.num_clusters == 3
    assert found.members(2).tolist() == np.flatnonzero(labels[order] == 2).tolist()


@pytest.mark.parametrize("linkage", ["average", "complete", "single"])
@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_agglomerative_is_that_of_all_distances(linkage: str, threshold: float) -> None:
    vectors = near(250)
    found = cluster(vectors, config=ClusterConfig(method="agglomerative", threshold=threshold, linkage=linkage))  # type: ignore[arg-type]
    maker = AgglomerativeClustering(None, metric="cosine", linkage=linkage, distance_threshold=1 - threshold)
    expected = maker.fit_predict(unit(vectors))
    pairs = {(a, b) for a, b in zip(found.labels_N.tolist(), expected.tolist(), strict=True)}
    assert len(pairs) == found.num_clusters == maker.n_clusters_  # one to one


@pytest.mark.parametrize("method", ["communities", "agglomerative"])
def test_equal_vectors_reach_a_threshold_of_one(method: str) -> None:
    vectors = np.repeat(near(200, width=384), 2, 0)
    config = ClusterConfig(method=method, threshold=1.0, min_size=2)  # type: ignore[arg-type]
    assert cluster(vectors, config=config).labels_N.tolist() == [row // 2 for row in range(400)]


def test_what_a_distance_takes() -> None:
    angles = np.linspace(0, np.pi / 2, 1500)  # few neighbours each, and one component
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    config = ClusterConfig(method="agglomerative", threshold=float(np.cos(angles[3])))
    tracemalloc.start()
    cluster(vectors, config=config)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 26 * len(vectors) ** 2  # as MAX_COMPONENT_ROWS says


def test_a_component_too_large_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COMPONENT_ROWS", 50)
    with pytest.raises(InputError, match="linkage single or method communities"):
        cluster(near(100), config=ClusterConfig(method="agglomerative", threshold=-1))


def test_kmeans_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KMEANS_SCORES", 60)
    vectors, labels = heaps()
    found = cluster(vectors, config=ClusterConfig(method="kmeans", num_clusters=3))
    assert found.labels_N.tolist() == labels.tolist()


def test_bad_input() -> None:
    with pytest.raises(InputError, match="between 1 and their number"):
        cluster(near(3), config=ClusterConfig(method="kmeans", num_clusters=4))
    with pytest.raises(InputError, match="a cosine"):
        ClusterConfig(threshold=75)
    with pytest.raises(InputError, match="at least 2"):
        ClusterConfig(method="hdbscan", min_size=1)
    with pytest.raises(InputError, match="Unknown linkage 'ward'; choose from average, complete, single"):
        ClusterConfig(method="agglomerative", linkage="ward")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Did you mean 'kmeans'"):
        cluster(near(3), config=ClusterConfig(method="kmean"))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_one_and_all_equal(method: str) -> None:
    config = ClusterConfig(method=method, min_size=2, num_clusters=1)  # type: ignore[arg-type]
    assert cluster([], config=config).num_clusters == 0
    assert len(cluster(near(1), config=config).labels_N) == 1
    equal = cluster(np.ones((20, 4), np.float32), config=config)
    assert equal.labels_N.tolist() == [0] * 20


def test_what_a_group_is_about() -> None:
    vectors = heaps((3, 2))[0]
    texts = ["the red apple", "an apple pie", "apple", "a whale", "whale songs"]
    first, second = groups_of(cluster(vectors, config=ClusterConfig(min_size=2)), unit(vectors), texts, num_keywords=1)
    assert (first.keywords, second.keywords) == (["apple"], ["whale"])
    assert (first.size, second.size) == (3, 2)
    scores = unit(vectors)[:3] @ unit(vectors)[:3].T
    assert first.representatives[0] == int(scores.sum(1).argmax())  # the medoid
    assert sorted(first.representatives) == [0, 1, 2]
    assert typical(unit(vectors[:3]))[0] == first.representatives[0]
    assert groups_of(cluster(vectors, config=ClusterConfig(min_size=2)), unit(vectors))[0].keywords == []


def test_keywords_of_korean_clusters_are_nouns() -> None:
    pytest.importorskip("kiwipiepy")
    texts = ["배우들의 연기가 좋다 ㅠㅠ", "연기가 정말 좋네 ㅠ", "연기 좋음", "고래를 보았다", "고래가 나온다"]
    vectors = heaps((3, 2))[0]
    first, second = groups_of(cluster(vectors, config=ClusterConfig(min_size=2)), vectors, texts, num_keywords=1)
    assert (first.keywords, second.keywords) == (["연기"], ["고래"])


def test_groups_of_other_vectors_are_refused() -> None:
    vectors = heaps((3, 2))[0]
    found = cluster(vectors, config=ClusterConfig(min_size=2))
    with pytest.raises(InputError, match="4 vectors for 5 clustered rows"):
        groups_of(found, vectors[:4])
    with pytest.raises(InputError, match="2 texts for 5 clustered rows"):
        groups_of(found, vectors, ["a", "b"])
    broken = vectors.copy()
    broken[4] = np.nan
    with pytest.raises(InputError, match="vectors of cluster 1 holds NaN"):
        groups_of(found, broken)
