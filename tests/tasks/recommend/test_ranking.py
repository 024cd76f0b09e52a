"""Recommendations: vectors on a circle whose order is known, texts, an index; and what can't be recommended."""

from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.index import Index
from munjang.tasks.recommend.catalogue import Items
from munjang.tasks.recommend.ranking import COMBINE, PICKS, RecommendConfig, explain, recommend, similar

DEGREES = {"a": 0, "b": 10, "c": 20, "d": 60, "e": 90, "f": 180}


def circle(degrees: dict[str, float]) -> Items:
    angles = np.radians(list(degrees.values()))
    return Items.of_vectors(np.stack([np.cos(angles), np.sin(angles)], 1) * 3, list(degrees))


ITEMS = circle(DEGREES)
NEAREST = RecommendConfig(diversity=0.0)


def ids(found: list) -> list[str]:
    return [each.id for each in found]


def test_like_this_one() -> None:
    found = similar(ITEMS, "a", k=3)
    assert ids(found) == ["b", "c", "d"]
    assert [each.score for each in found] == pytest.approx(np.cos(np.radians([10, 20, 60])), abs=1e-6)
    assert {each.because for each in found} == {"a"}


def test_a_history() -> None:
    found = recommend(ITEMS, ["a", "e"], config=NEAREST)
    # cosines to 0 and 90 degrees, on average: d .683, c .641, b .579, f -.5
    assert ids(found) == ["d", "c", "b", "f"]
    assert found[0].score == pytest.approx((np.cos(np.pi / 3) + np.sin(np.pi / 3)) / 2, abs=1e-6)
    assert [each.because for each in found] == ["e", "a", "a", "e"]
    assert ids(recommend(ITEMS, ["a", "e"], config=RecommendConfig(diversity=0, combine="nearest"))) == list("bcdf")


def test_newer_likes_count_more() -> None:
    assert ids(recommend(ITEMS, ["e", "a"], config=RecommendConfig(diversity=0, half_life=0.5)))[:2] == ["b", "c"]
    assert ids(recommend(ITEMS, ["a", "e"], config=RecommendConfig(diversity=0, half_life=0.5)))[:2] == ["d", "c"]


def test_dislikes_push_away() -> None:
    assert ids(recommend(ITEMS, ["c"], ["a"], config=NEAREST)) == ["d", "b", "e", "f"]
    config = RecommendConfig(diversity=0, dislike_weight=0)
    assert ids(recommend(ITEMS, ["c"], ["a"], config=config)) == ["b", "d", "e", "f"]


def test_what_was_seen_is_left_out() -> None:
    assert ids(recommend(ITEMS, ["a"], exclude=["b", "c"], config=NEAREST)) == ["d", "e", "f"]
    assert recommend(ITEMS, ["a"], exclude=list("bcdef")) == []
    assert ids(recommend(ITEMS, ["a"], exclude=["b"], config=RecommendConfig(k=1, candidates=1))) == ["c"]


def test_ids_that_are_numbers() -> None:
    items = Items.of_vectors(np.array([[1, 0], [0.9, 0.1], [0.5, 0.5], [0, 1]]), ids=[1, 2, 3, 4])
    assert ids(recommend(items, [1], [4], config=NEAREST, exclude=[2])) == ["3"]
    assert ids(similar(items, 4)) == ["3", "2", "1"]
    with pytest.raises(InputError, match="no item '9'"):
        recommend(items, np.array([9]))


@pytest.mark.parametrize("pick", PICKS)
def test_diverse_picks(pick: str) -> None:
    """Nine of a kind and two others: only with diversity the others are among the first four."""
    items = circle({**{f"near{place}": place for place in range(10)}, "left": 50, "right": -50})
    plain = recommend(items, ["near0"], config=RecommendConfig(k=4, diversity=0, pick=pick))
    diverse = recommend(items, ["near0"], config=RecommendConfig(k=4, diversity=0.6, pick=pick))
    assert {"left", "right"} & set(ids(plain)) == set()
    assert {"left", "right"} <= set(ids(diverse))


@pytest.mark.parametrize("combine", COMBINE)
def test_all_equal(combine: str) -> None:
    items = Items.of_vectors(np.ones((4, 3)))
    assert ids(recommend(items, ["1"], config=RecommendConfig(combine=combine))) == ["0", "2", "3"]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, device="cpu", threads=1)


TEXTS = ["the quick fox jumps", "a quick brown fox", "나는 오늘 학교에 갔다", "나는 오늘 김치찌개는", "old radio music"]


def test_a_need_in_words(model: BiEncoder) -> None:
    items = Items.of_texts(TEXTS, model, ids=[10, 11, 12, 13, 14])
    found = recommend(items, need="나는 오늘", config=NEAREST)
    cosines = model.similarity(["나는 오늘"], TEXTS)[0]
    assert ids(found) == [str(10 + place) for place in np.argsort(-cosines)]
    assert found[0].because is None
    both = recommend(items, ["10"], need="나는 오늘", config=NEAREST)
    expected = (cosines + model.similarity([TEXTS[0]], TEXTS)[0]) / 2
    assert [each.score for each in both] == pytest.approx(sorted(expected[1:], reverse=True), abs=1e-5)
    told = explain(found[:2], model, need="나는 오늘")
    for each in told:
        assert 1 <= len(each.keywords) <= 3


@pytest.mark.parametrize("kept", ["float32", "float16", "binary"])
def test_an_index_gives_the_same(model: BiEncoder, kept: str) -> None:
    index = Index.open("memory:", model, vectors=kept)
    names = [f"item {place}" for place in range(5)]
    index.add(TEXTS, ids=names)
    items = Items.of_texts(TEXTS, model, ids=names)
    for likes in (["item 0"], ["item 2", "item 4"]):
        ours, theirs = recommend(items, likes), recommend(index, likes)
        assert ids(ours) == ids(theirs)
        assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=2e-3)
    with pytest.raises(InputError, match="no item 'item 9'"):
        recommend(index, ["item 9"])


@pytest.mark.parametrize(
    ("likes", "more", "told"),
    [
        ([], {}, "Recommended for whom"),
        ("a", {}, r"likes is a list of ids, \['a'\] for one"),
        (["a"], {"exclude": "abd"}, r"exclude is a list of ids, \['abd'\] for one"),
        (["z"], {}, "There is no item 'z'"),
        (["a"], {"dislikes": ["a"]}, "'a' is liked and disliked"),
        ([], {"need": " "}, "The need is empty"),
        ([], {"need": "soup"}, "A need in words takes a model"),
    ],
)
def test_what_is_refused(likes: object, more: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        recommend(ITEMS, likes, **more)


def test_items_that_are_refused(model: BiEncoder) -> None:
    for given, told in (
        ((np.zeros((0, 3)),), "There are no items"),
        (([[1.0, np.nan]],), "Vector 0 of the items holds NaN"),
        ((np.ones((2, 3)), ["x", "x"]), "The id 'x' occurs twice"),
        ((np.ones((2, 3)), ["x"]), "2 vectors, 1 ids"),
        ((np.ones((2, 3)), ["x", "y"], None, model), "items have 3 dimensions, not 32"),
    ):
        with pytest.raises(InputError, match=told):
            Items.of_vectors(*given)
    with pytest.raises(InputError, match="Unknown pick 'x'; choose from determinantal, mmr"):
        RecommendConfig(pick="x")
    with pytest.raises(InputError, match="Unknown combine 'x'; choose from mean, nearest"):
        RecommendConfig(combine="x")
    for wrong in ({"k": 0}, {"diversity": 2}, {"half_life": 0}, {"dislike_weight": -1}):
        with pytest.raises(InputError):
            RecommendConfig(**wrong)
