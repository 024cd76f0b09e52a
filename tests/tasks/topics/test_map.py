"""The map: discs apart, typical texts in the middle, hostile text shown as text, no outside requests."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.topics.find import TopicConfig, find_topics
from munjang.tasks.topics.map import MAX_POINTS, map_data, write_map
from munjang.tasks.topics.places import place_texts, place_topics
from munjang.tasks.topics.times import topics_over_time
from tests.pages.reading import Page
from tests.tasks.topics.made import found, made

HOSTILE = '</script><script>alert(1)</script><img src="https://x.example/a.png" onerror=alert(2)>\u2028\u202e'


def test_discs_do_not_overlap_and_areas_are_as_sizes() -> None:
    random = np.random.default_rng(0)
    centres = random.normal(size=(30, 16)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    sizes = random.integers(1, 500, 30)
    places, radii = place_topics(centres, sizes)
    distance = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(30)
    assert (distance - radii[:, None] - radii[None]).min() > -0.01
    np.testing.assert_allclose(radii**2 / radii[0] ** 2, sizes / sizes[0])


def test_topics_that_are_alike_lie_near() -> None:
    centres = np.array([[1, 0, 0], [0.9, 0.436, 0], [0, 0, 1]], np.float32)
    places, _ = place_topics(centres, np.array([1, 1, 1]))
    first, second, third = places
    assert np.linalg.norm(first - second) < 0.7 * np.linalg.norm(first - third)


@pytest.mark.parametrize("has_vectors", [True, False])
def test_typical_texts_lie_in_the_middle(has_vectors: bool) -> None:
    model, (_, vectors) = found(), made(0)
    places, radii = place_topics(model.centres, np.array([topic.size for topic in model.topics]))
    points = place_texts(model, places, radii, vectors if has_vectors else None)
    for topic in range(3):
        rows = np.flatnonzero(model.topic_of_N == topic)
        reach = np.linalg.norm(points[rows] - places[topic], axis=1)
        assert reach.max() <= radii[topic] + 1e-9
        assert np.argmin(reach) == np.argmax(model.similarity_N[rows])


@pytest.mark.parametrize("has_vectors", [True, False])
def test_one_topic_two_topics_and_outliers_have_places(has_vectors: bool) -> None:
    texts, vectors = made(2)
    for num_topics in (1, 2):
        model = find_topics(texts, config=TopicConfig(num_topics=num_topics), vectors=vectors)
        model = replace(model, topic_of_N=np.where(np.arange(64) > 60, -1, model.topic_of_N))
        data = map_data(model, vectors if has_vectors else None)
        assert np.isfinite([point[:2] for point in data["points"]]).all()
        assert data["num_outliers"] == 3


def test_hostile_text_stays_text_and_nothing_is_fetched(tmp_path: Path) -> None:
    model = found()
    model = replace(model, texts=[HOSTILE, "\ud800", *model.texts[2:]])
    write_map(tmp_path / "map.html", model, made(0)[1], HOSTILE, topics_over_time(model, ["2024-01"] * 62))
    page = (tmp_path / "map.html").read_text("utf-8")
    assert len(re.findall("<script>", page)) == 3  # theme, language, map
    assert page.count("<script") == 5  # and two of data
    assert "<img" not in page
    assert "default-src 'none'" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["texts"][0].startswith("</script><script>alert(1)")
    assert "\u202e" not in data["texts"][0]  # turns the direction of what follows
    read = Page(page)
    assert read.fetched == ["a #main"]
    assert [row[0] for row in read.rows] == ["period", *["2024-01-01"] * 3]


def test_the_path_may_be_a_text(tmp_path: Path) -> None:
    write_map(str(tmp_path / "map.html"), found())
    assert (tmp_path / "map.html").is_file()


def test_many_points_are_sampled_and_it_says_so() -> None:
    model = found()
    many = MAX_POINTS // 62 + 1
    big = replace(
        model,
        texts=model.texts * many,
        topic_of_N=np.tile(model.topic_of_N, many),
        similarity_N=np.tile(model.similarity_N, many),
    )
    data = map_data(big)
    assert (len(data["points"]), data["num_texts"]) == (MAX_POINTS, 62 * many)


def test_vectors_of_other_texts_are_refused() -> None:
    with pytest.raises(InputError, match="2 vectors for 62 texts"):
        map_data(found(), np.eye(2))
