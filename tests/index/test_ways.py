from munjang.index.ways import weights_of


def test_weights_suit_the_language_and_a_given_one_wins() -> None:
    assert weights_of("What is a cat?", ["words", "dense"], None) == {"words": 0.3, "dense": 0.7}
    assert weights_of("고양이란?", ["words", "dense"], None) == {"words": 0.5, "dense": 0.5}
    assert weights_of("고양이란?", ["words", "dense"], {"words": 2}) == {"words": 2.0, "dense": 0.5}
