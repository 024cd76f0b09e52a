import pytest

from munjang.index.ways import weights_of


def test_weights_suit_the_query_and_a_given_one_wins() -> None:
    assert weights_of("고양이란?", ["words", "dense"], None) == {"words": 0.4, "dense": 0.6}
    assert weights_of("고양이란?", ["words", "dense"], {"words": 2}) == {"words": 2.0, "dense": 0.6}
    assert weights_of("", ["words", "dense"], None) == {"words": 0.1, "dense": 0.9}


def test_the_more_words_a_query_has_the_more_they_count() -> None:
    """Words without meaning are not counted."""
    weights = [weights_of(query, ["words"], None)["words"] for query in ("What is a cat?", "cat dog " * 3, "cat " * 90)]
    assert weights == pytest.approx([0.1, 0.2, 0.6])
    assert weights_of("고양이 강아지 토끼 거북이 " * 3, ["words"], None) == {"words": 0.6}
