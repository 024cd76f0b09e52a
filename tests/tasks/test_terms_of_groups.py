"""Class-based TF-IDF: weights by hand, Korean and English, groups with nothing to say."""

import math

import pytest

from munjang.errors import InputError
from munjang.tasks.terms_of_groups import class_terms, terms_of


def test_weights_are_share_times_rarity() -> None:
    # terms: red apple apple | blue whale; 5 in all, 2.5 a group
    first, second = class_terms([["a red apple", "The APPLE!"], ["a blue whale"]])
    assert [term for term, _ in first] == ["apple", "red"]
    assert first[0][1] == pytest.approx(2 / 3 * math.log(1 + 2.5 / 2))
    assert first[1][1] == pytest.approx(1 / 3 * math.log(1 + 2.5 / 1))
    assert [term for term, _ in second] == ["blue", "whale"]
    assert [weight for _, weight in second] == pytest.approx([0.5 * math.log(3.5)] * 2)


def test_a_term_of_all_groups_weighs_less() -> None:
    first, _ = class_terms([["data base", "data table"], ["data cat", "data dog"]], top=3)
    assert dict(first)["data"] < 2 * dict(first)["base"]  # twice as often, but everywhere


def test_korean_particles_are_cut_off() -> None:
    pytest.importorskip("kiwipiepy")
    first, _ = class_terms([["학교에서 공부를 했다", "학교는 크다"], ["고양이가 잔다"]], top=1)
    assert first[0][0] == "학교"


def test_phrases_span_neighbours_that_are_left() -> None:
    (found,) = class_terms([["state of the art", "state of an art"]], top=9, max_words=2)
    assert {term for term, _ in found} == {"state", "art", "state art"}


def test_only_stop_words_and_nothing() -> None:
    assert class_terms([["the of and", ""], []]) == [[], []]
    assert class_terms([]) == []


def test_given_stop_words_and_rare_terms() -> None:
    (found,) = class_terms([["the cat", "the dog", "the cat"]], stop_words=["cat"], min_count=2)
    assert [term for term, _ in found] == ["the"]


def test_numbers_below_one_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        class_terms([["a"]], top=0)


def test_what_people_read_are_words() -> None:
    pytest.importorskip("kiwipiepy")
    groups = [
        ["배우 연기가 좋았다 ㅠㅠ", "연기가 참 좋네 ㅠ.ㅠ", "배우가 나오는 2008 연기"],
        ["a 2008 car", "x car"],
        [],
    ]
    first, second, third = terms_of(groups, top=3)
    assert [term for term, _ in first] == ["연기", "배우"]  # nouns: no stems (좋, 나오), letters or numbers
    assert [term for term, _ in second] == ["car"]
    assert third == ()
