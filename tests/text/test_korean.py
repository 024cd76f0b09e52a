"""Korean words: compounds whole, particles off, phrases only where nothing stands between; one analyser for all."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from munjang.text import korean
from munjang.text.korean import by_endings, has_hangul, nouns
from munjang.text.terms import terms

TEXTS = ["대한민국의 수도는 서울특별시이다.", "학교에서 친구와 점심을 먹었다.", "새로 나온 휴대전화를 샀다."] * 20


@pytest.fixture
def kiwi() -> None:
    pytest.importorskip("kiwipiepy")


@pytest.mark.usefixtures("kiwi")
def test_particles_are_cut_off_and_compounds_stay_whole() -> None:
    (found,) = nouns(["대한민국의 수도는 서울특별시이다."])
    assert found == [("대한민국", "의 "), ("수도", None), ("서울특별시", None)]


@pytest.mark.usefixtures("kiwi")
def test_nouns_side_by_side_are_a_phrase_and_foreign_words_count() -> None:
    found, nothing = nouns(["BERT 모델로 영화 포스터를 찾았다", "😀 !!"])
    assert found == [("bert", " "), ("모델", None), ("영화", " "), ("포스터", None)]
    assert nothing == []


@pytest.mark.usefixtures("kiwi")
def test_decomposed_hangul_is_read_too() -> None:
    import unicodedata

    assert nouns([unicodedata.normalize("NFD", "고양이가 잔다")]) == [[("고양이", None)]]


def test_without_kiwi_the_endings_of_all_words_decide() -> None:
    first, second = by_endings(["고양이가 소파에서 잔다.", "고양이는 소파를 좋아한다."])
    assert [word for word, _ in first] == ["고양이", "소파", "잔다"]
    assert [word for word, _ in second] == ["고양이", "소파", "좋아"]


def test_without_kiwi_a_particle_ends_a_phrase() -> None:
    assert by_endings(["자연어 처리를 배운다"]) == [[("자연어", " "), ("처리", None), ("배운다", None)]]


def test_short_words_are_not_cut_without_kiwi() -> None:
    assert by_endings(["회의 나이"]) == [[("회의", " "), ("나이", None)]]


@pytest.mark.parametrize(("text", "is_korean"), [("서울 is big", True), ("Seoul", False), ("", False), ("日本", False)])
def test_hangul_is_seen(text: str, is_korean: bool) -> None:
    assert has_hangul(text) is is_korean


@pytest.mark.usefixtures("kiwi")
def test_a_full_stop_is_no_part_of_a_foreign_word() -> None:
    (found,) = nouns(["느낄 수 없었다. I can swim.. U.S. 정부가 node.js 사용"])
    assert [noun for noun, _ in found] == ["i", "can", "swim", "u.s.", "정부", "node.js", "사용"]


@pytest.mark.usefixtures("kiwi")
def test_threads_that_come_at_once_load_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import kiwipiepy

    made, real = [], kiwipiepy.Kiwi
    monkeypatch.setattr(kiwipiepy, "Kiwi", lambda: made.append(real()) or made[-1])
    korean._loaded.cache_clear()
    ready = threading.Barrier(4)

    def cut(number: int) -> object:
        ready.wait()
        return nouns(TEXTS) if number % 2 else terms(TEXTS)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(cut, range(4)))
    assert len(made) == 1
    assert found[:2] == found[2:]
    assert found[0] == terms(TEXTS)
    assert found[1] == nouns(TEXTS)
    assert found[1][0][:2] == [("대한민국", "의 "), ("수도", None)]
