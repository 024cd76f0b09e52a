import pytest

from munjang.text.highlights import Highlighter


def marked(query: str, text: str) -> list[str]:
    return [text[start:end] for start, end in Highlighter(query).places(text)]


def test_english_by_stems() -> None:
    assert marked("What is the theory of stalling wings?", "Theories: the wing stalled.") == [
        "Theories",
        "wing",
        "stalled",
    ]
    assert marked("the", "the cat") == []
    assert Highlighter("").coverage("text") == 0.0


def test_korean_without_particles() -> None:
    pytest.importorskip("kiwipiepy")
    assert marked("대한민국의 수도는 어디인가?", "수도 서울은 대한민국에서 가장 크다.") == ["수도", "대한민국"]
    words = Highlighter("대한민국의 수도는 어디인가?")
    assert words.coverage("서울은 수도이다") == 0.5
    assert words.coverage("어디에도 없다") == 0.0
    assert marked("책", "산책하며 책을 읽다") == ["책"]  # one syllable only where a word begins


def test_letters_of_several_characters() -> None:
    assert marked("fine", "a ﬁne day") == ["ﬁne"]


def test_other_words_are_marked_but_not_counted() -> None:
    words = Highlighter("car", also=["automobile"])
    assert words.places("an automobile") == [(3, 13)]
    assert words.coverage("an automobile") == 0.0
