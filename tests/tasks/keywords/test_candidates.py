"""Candidates: scikit-learn's words and phrases, Korean nouns, given ones."""

import unicodedata

import pytest

from munjang.errors import InputError
from munjang.tasks.keywords.candidates import Candidates, find_candidates, given_candidates
from munjang.tasks.keywords.stop_words import ENGLISH

TEXTS = [
    "Supervised learning is the machine-learning task of learning a function, e.g. x -> y.",
    "The quick brown fox; the LAZY dog's naïve café №42 straße",
    "",
    "of the and",
    "learning learning machine",
]


def decomposed(texts: list[str]) -> list[str]:
    return [unicodedata.normalize("NFD", text) for text in texts]


def said(found: Candidates, row: int) -> list[str]:
    return [found.phrases[place] for place in found.of_texts[row]]


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("stop_words", ["english", "none", ["learning"]])
@pytest.mark.parametrize("min_texts", [1, 2])
def test_words_are_those_of_scikit_learn(ngrams: tuple[int, int], stop_words: object, min_texts: int) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    theirs = text.CountVectorizer(
        ngram_range=ngrams, stop_words=None if stop_words == "none" else stop_words, min_df=min_texts
    )
    try:
        counts = theirs.fit_transform(TEXTS)
        expected = [sorted(theirs.get_feature_names_out()[counts[row].nonzero()[1]]) for row in range(len(TEXTS))]
    except ValueError:  # nothing is left, which is an error there
        expected = [[] for _ in TEXTS]
    ours = find_candidates(TEXTS, ngrams, stop_words, min_texts=min_texts)
    assert [said(ours, row) for row in range(len(TEXTS))] == expected


def test_stop_words_are_those_of_scikit_learn() -> None:
    assert pytest.importorskip("sklearn.feature_extraction.text").ENGLISH_STOP_WORDS == ENGLISH


def test_korean_phrases_are_of_nouns() -> None:
    pytest.importorskip("kiwipiepy")
    found = find_candidates(["대한민국의 수도는 서울이다.", "a big city"], ngrams=(1, 2))
    assert said(found, 0) == ["대한민국", "대한민국의 수도", "서울", "수도"]
    assert said(found, 1) == ["big", "big city", "city"]


@pytest.mark.parametrize("cut", ["auto", "nouns", "words"])
def test_korean_as_macos_writes_it_is_cut_alike(cut: str) -> None:
    texts = ["대한민국의 수도는 서울이다.", "un café à Séoul"]
    assert (
        find_candidates(decomposed(texts), (1, 2), cut=cut).phrases == find_candidates(texts, (1, 2), cut=cut).phrases
    )


def test_given_candidates_are_found_in_either_form() -> None:
    for texts, given in ((["서울에서 만나요"], decomposed(["서울"])), (decomposed(["서울에서 만나요"]), ["서울"])):
        assert said(given_candidates(texts, given, "english"), 0) == given


def test_words_can_be_asked_for_in_korean_texts() -> None:
    assert said(find_candidates(["서울은 수도이다"], cut="words"), 0) == ["서울은", "수도이다"]


def test_given_for_all_where_a_text_says_them() -> None:
    texts = ["State of the Art in machine learning", "서울에서 만나요", "machines by learning"]
    found = given_candidates(texts, ["Machine Learning", "state of the art", "서울", "absent"], "english")
    assert [said(found, row) for row in range(3)] == [["Machine Learning", "state of the art"], ["서울"], []]


def test_given_ones_are_found_as_they_are_written() -> None:
    texts = ["We use C++ and R&D", "c# or vitamin  C는 좋다", "a developer, cc and vitamins", "HELLO"]
    given = ["C++", "C#", "R&D", "vitamin C", "C++ developer", "Hello", "HELLO"]
    found = given_candidates(texts, given, "english")
    assert [said(found, row) for row in range(4)] == [["C++", "R&D"], ["C#", "vitamin C"], [], ["HELLO", "Hello"]]


def test_given_korean_is_not_found_inside_a_word() -> None:
    texts = ["시장에 갔다", "대한민국의 수도", "장에서 KT대한민국까지", "집에서"]
    found = given_candidates(texts, ["장에", "민국", "대한민국", "시장", "집"], "english")
    assert [said(found, row) for row in range(4)] == [["시장"], ["대한민국"], ["대한민국", "장에"], ["집"]]


def test_no_candidates_for_no_texts() -> None:
    assert given_candidates([], [], "english").phrases == []


def test_given_for_each_text_are_taken_as_they_are() -> None:
    found = given_candidates(["one", "two"], [["b", "a", "a"], []], "english")
    assert [said(found, row) for row in range(2)] == [["a", "b"], []]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([["a"]], "1 lists of candidates for 2 texts"),
        (["a", 3], "strings, not 3"),
        ([["a"], [None]], "text 1"),
        ([["a"], "hello"], "strings, not"),
        ("hello", "list of phrases, not one string"),
        ([], "no candidates; give some"),
    ],
)
def test_bad_candidates_are_refused(candidates: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        given_candidates(["one", "two"], candidates, "english")


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="ngrams"):
        find_candidates(["a"], ngrams=(2, 1))
    with pytest.raises(InputError, match=r"Unknown way to cut texts 'noun'.*Did you mean 'nouns'"):
        find_candidates(["a"], cut="noun")
    with pytest.raises(InputError, match="Unknown list of stop words"):
        find_candidates(["a"], stop_words="french")
