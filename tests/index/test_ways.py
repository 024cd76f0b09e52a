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


@pytest.mark.parametrize("query", ["AB-1234", "KB5034441", "iPhone 15", "1988"])
def test_codes_are_found_by_their_letters(query: str) -> None:
    assert weights_of(query, ["words"], None) == {"words": 0.4}


@pytest.mark.parametrize("query", ["", "diabetes", "population of France in 1988"])
def test_other_queries_are_not_codes(query: str) -> None:
    assert weights_of(query, ["words"], None)["words"] == pytest.approx(0.1)
