from munjang.text.english import stem


def test_words_of_one_root_share_a_stem() -> None:
    for group in (
        ("stall", "stalls", "stalled", "stalling"),
        ("theory", "theories"),
        ("measure", "measured", "measuring"),
    ):
        assert len({stem(word) for word in group}) == 1, group


def test_short_words_and_other_letters_stay() -> None:
    for word in ("is", "bus", "gas", "ring", "서울", "b2b", "café"):
        assert stem(word) == word
