"""The corpus in two dimensions: places by hand, clusters by size, words that tell, and never too much of it."""

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.index import Index
from munjang.server import landscape
from munjang.server.landscape import Sample, by_size, draw, project, sample, shared, telling, words_of
from munjang.server.tenants import EVERYONE
from munjang.server.views import ServedIndex, View
from tests.texts import ENGLISH

TEXTS = [*dict.fromkeys(ENGLISH)][:40]


def test_project_by_hand() -> None:
    """Points on a line of slope 3/4, and one that stands off it: the line is the first axis, the other the second."""
    on_line = np.array([[-4, -3], [4, 3], [0, 0]], np.float32)
    places = project(np.concatenate([on_line, [[3, -4], [-3, 4]]]).astype(np.float32) * [[1], [1], [1], [0.2], [0.2]])
    assert np.abs(places) == pytest.approx(np.array([[1, 0], [1, 0], [0, 0], [0, 1], [0, 1]]), abs=1e-5)
    assert places[0, 0] == -places[1, 0]


def test_project_keeps_the_variance_of_an_svd() -> None:
    vectors = np.random.default_rng(3).normal(size=(30, 8)).astype(np.float32) * np.arange(1, 9, dtype=np.float32)
    left, sizes, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    wanted = left[:, :2] * sizes[:2]
    wanted /= np.abs(wanted).max(0)
    assert np.abs(project(vectors)) == pytest.approx(np.abs(wanted), abs=1e-4)


@pytest.mark.parametrize("shape", [(1, 4), (2, 4), (5, 1), (3, 3)])
def test_project_of_little(shape: tuple[int, int]) -> None:
    assert project(np.ones(shape, np.float32)).tolist() == [[0.0, 0.0]] * shape[0]


def test_by_size() -> None:
    assert by_size(np.array([5, 2, 2, 9, 2, 9])).tolist() == [2, 0, 0, 1, 0, 1]


def test_words_that_tell() -> None:
    texts = ["바다는 넓다", "바다를 본다", "money talks", "saving money", "바다와 money"]
    assert telling(texts, np.array([0, 0, 1, 1, 1])) == [["바다"], ["money"]]
    assert words_of("The 바다에서는 고래가 산다, they swim!") == {"바다", "고래", "swim"}


def test_metadata_that_a_cluster_shares() -> None:
    """A third of a cluster at least, and three times as often as all: `ko` is too common, `one` too rare."""
    clusters = np.array([0] * 4 + [1] * 9)
    topics = ["law", "law", "law", "one", *[None] * 9]
    metadata = [{"lang": "ko", "topic": topic, "year": 1} for topic in topics]
    assert shared(metadata, clusters) == [["law"], []]  # 3 of 4 here, 3 of 13 in all


def test_draw_is_bounded_and_the_same_twice(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.open("memory:", model)
    view = View(ServedIndex("default", index), EVERYONE)
    assert draw(sample(view)) == landscape.Landscape([], [], 0)
    index.add(TEXTS, metadata=[{"year": 2000 + n} for n in range(len(TEXTS))])
    whole = draw(sample(view))
    assert sorted(point.text for point in whole.points) == sorted(TEXTS)
    assert sum(cluster.size for cluster in whole.clusters) == len(TEXTS)
    assert all(-1 <= place <= 1 for point in whole.points for place in (point.x, point.y))
    assert [cluster.size for cluster in whole.clusters] == sorted((each.size for each in whole.clusters), reverse=True)
    assert draw(sample(view)) == whole
    monkeypatch.setattr(landscape, "MAX_POINTS", 7)
    part = draw(sample(view))
    assert (len(part.points), part.num_passages) == (7, len(TEXTS))
    assert {point.text for point in part.points} < set(TEXTS)


def test_points_are_small() -> None:
    metadata = {"note": "x" * 10_000, "none": None, **{f"field{n}": n for n in range(100)}}
    (point,) = draw(Sample(np.ones((1, 3), np.float32), [("id", "d", "long " * 1000, metadata)], 1)).points
    assert (len(point.text), len(point.metadata["note"]), len(point.metadata)) == (160, 160, 16)
    assert "none" not in point.metadata


def test_equal_passages() -> None:
    found = Sample(np.ones((6, 3), np.float32), [(str(n), "d", "same", {}) for n in range(6)], 6)
    assert {(point.x, point.y) for point in draw(found).points} == {(0.0, 0.0)}
