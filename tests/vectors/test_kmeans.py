"""k-means finds what is there, as well as scikit-learn does."""

import numpy as np
import pytest
import sklearn.cluster
import sklearn.datasets

from munjang.errors import InputError
from munjang.evaluation.metrics.clustering import agreement
from munjang.vectors.kmeans import kmeans


@pytest.mark.parametrize("seed", range(3))
def test_as_good_as_scikit_learn(seed: int) -> None:
    points, labels = sklearn.datasets.make_blobs(300, 8, centers=7, cluster_std=2.5, random_state=seed)
    found = kmeans(points.astype(np.float32), 7, seed)
    theirs = sklearn.cluster.KMeans(7, n_init=10, random_state=seed).fit(points)
    assert found.inertia <= 1.005 * theirs.inertia_
    theirs_v = agreement(labels, theirs.labels_).v_measure
    assert agreement(labels, found.clusters_N).v_measure == pytest.approx(theirs_v, abs=0.02)


def test_result_is_a_fixed_point() -> None:
    points = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32) + 5
    found = kmeans(points, 4, num_starts=2)
    distances = ((points[:, None] - found.centres_KD[None]) ** 2).sum(2)
    np.testing.assert_array_equal(found.clusters_N, distances.argmin(1))
    assert found.inertia == pytest.approx(distances.min(1).sum(), rel=1e-4)


def test_same_seed_same_clusters() -> None:
    points = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)
    np.testing.assert_array_equal(kmeans(points, 5, seed=3).clusters_N, kmeans(points, 5, seed=3).clusters_N)


def test_edges() -> None:
    points = np.array([[0.0], [0.0], [1.0]], np.float32)
    assert kmeans(points, 3).inertia == 0  # more clusters than distinct points
    assert kmeans(points, 1).clusters_N.tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="4 clusters can't be made of 3 points"):
        kmeans(points, 4)


def test_progress_counts_centres_and_rounds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("munjang.progress.MIN_SHOWN_S", 0.0)
    points = np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    kmeans(points, 5, num_starts=2, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("k-means, steps: 1,")
    assert int(lines[-1].split(": ")[1].split(",")[0]) >= 2 * (
        4 + 1
    )  # two starts: four centres beside the first, a round
    kmeans(points, 5, num_starts=2)
    assert not capsys.readouterr().err
