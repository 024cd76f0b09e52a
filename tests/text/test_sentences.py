"""Sentences of Korean and English texts by hand."""

import pytest

from munjang.text.sentences import split
from tests.texts import HOSTILE, hostile

CASES = {
    "": [],
    " \n ": [],
    "one": ["one"],
    "One. Two! Three? Four": ["One.", "Two!", "Three?", "Four"],
    "  One.   Two.  ": ["One.", "Two."],
    "비가 왔다. 우산이 없었다! 왜?": ["비가 왔다.", "우산이 없었다!", "왜?"],
    "今日は雨。 明日は？ 晴れ！": ["今日は雨。", "明日は？", "晴れ！"],
    "first line\nsecond line\n\nthird": ["first line", "second line", "third"],
    "Dr. Kim and Mr. Lee came. They sat.": ["Dr. Kim and Mr. Lee came.", "They sat."],
    "J. R. Smith wrote it. It sold.": ["J. R. Smith wrote it.", "It sold."],
    "Fig. 3 of Chen et al. shows it, e.g. here. Next.": ["Fig. 3 of Chen et al. shows it, e.g. here.", "Next."],
    "It costs 3.14 dollars. Version 1.2.3 is out.": ["It costs 3.14 dollars.", "Version 1.2.3 is out."],
    'He said "Go." Then (as told!) he left.': ['He said "Go."', "Then (as told!)", "he left."],
    "그는 “가자.” 하고 말했다. 「정말?」 물었다.": ["그는 “가자.”", "하고 말했다.", "「정말?」", "물었다."],
    "Wait... What?! Really?": ["Wait...", "What?!", "Really?"],
    "A line that ends with Dr.\nKim came.": ["A line that ends with Dr.", "Kim came."],
    "windows\r\nlines. Here": ["windows", "lines.", "Here"],
}


@pytest.mark.parametrize("text", CASES)
def test_by_hand(text: str) -> None:
    assert split(text) == CASES[text]


def test_nothing_is_lost() -> None:
    """Whatever a text holds, its pieces are its characters in order, without white space at the cuts."""
    for text in [*HOSTILE, *hostile(300)]:
        pieces = split(text)
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert all(piece == piece.strip() and piece for piece in pieces)


def test_long_texts_are_quick() -> None:
    """A pattern that looks back may take the square of the length."""
    assert len(split("왔다. " * 50_000)) == 50_000
    assert split("." * 200_000) == ["." * 200_000]
    assert split('"' * 200_000) == ['"' * 200_000]
    assert len(split(")" * 100_000 + " a")) == 1
