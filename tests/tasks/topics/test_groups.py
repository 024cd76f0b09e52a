"""Groups of points: the number is found, outliers are left, and what can't be grouped is said."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.evaluation.metrics.clustering import agreement
from munjang.tasks.topics.groups import best_number, group, silhouette


def blobs(num_groups: int, size: int = 30, spread: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(num_groups)
    groups = np.repeat(np.arange(num_groups), size)
    centres = np.eye(num_groups + 2, dtype=np.float32)[:num_groups]
    return (centres[groups] + random.normal(scale=spread, size=(len(groups), num_groups + 2))).astype(
        np.float32
    ), groups


@pytest.mark.parametrize("num_groups", [2, 5, 9])
def test_the_number_of_groups_is_found(num_groups: int) -> None:
    points, groups = blobs(num_groups)
    assert best_number(points, most=40) == num_groups
    assert agreement(groups, group(points, "kmeans", None, 5, 0)).v_measure == pytest.approx(1)


def test_silhouette_by_hand() -> None:
    # centres at 0 and 10: the points are 1 away from their own and 9 or 11 from the other
    points = np.array([[-1.0], [1.0], [9.0], [11.0]], np.float32)
    assert silhouette(points, points, 2) == pytest.approx(1 - (1 / 9 + 1 / 11) / 2, abs=1e-5)


def test_what_has_no_groups_is_not_cut_into_many() -> None:
    points = np.random.default_rng(2).normal(size=(1500, 30)).astype(np.float32)
    assert best_number(points, most=150) < 10  # 150 by points that the centres were made for


def test_equal_points_are_one_group() -> None:
    assert best_number(np.ones((20, 3), np.float32), most=10) == 1


def test_more_groups_than_different_points_are_refused() -> None:
    points = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    with pytest.raises(InputError, match=r"num_topics=4, but there are only 3 different texts"):
        group(points, "kmeans", 4, 1, 0)


def test_many_points_go_to_centres_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    points, groups = blobs(4)
    monkeypatch.setattr("munjang.tasks.topics.groups.MAX_KMEANS_POINTS", 40)
    monkeypatch.setattr("munjang.vectors.kmeans.BLOCK_ROWS", 7)
    assert agreement(groups, group(points, "kmeans", 4, 5, 0)).v_measure == pytest.approx(1)


def test_hdbscan_leaves_outliers() -> None:
    pytest.importorskip("sklearn")
    points, groups = blobs(3)
    far = np.full((1, 5), 30, np.float32)
    found = group(np.concatenate([points, far]), "hdbscan", None, 10, 0)
    assert found[-1] == -1
    assert agreement(groups, found[:-1]).v_measure > 0.9
    assert group(points[:3], "hdbscan", None, 10, 0).tolist() == [-1, -1, -1]


def test_bad_settings_are_refused() -> None:
    points, _ = blobs(2)
    with pytest.raises(InputError, match=r"Unknown way to cluster.*kmeans"):
        group(points, "k-means", None, 5, 0)
    pytest.importorskip("sklearn")
    with pytest.raises(InputError, match="at least 2"):
        group(points, "hdbscan", None, 1, 0)
