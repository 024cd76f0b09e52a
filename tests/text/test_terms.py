import pytest

from munjang.text import korean, terms


def test_english_words() -> None:
    assert terms.terms(["Running SHOES, 2 pairs!", "", "ﬁne_print"]) == ["running shoes 2 pairs", "", "fine print"]


def test_korean_by_syllables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A noun is found whatever particle follows it."""
    monkeypatch.setattr(korean, "has_kiwi", lambda: False)
    with_particle, alone = terms.terms(["학교에서 만나", "학교"])
    assert with_particle.split() == ["학교", "교에", "에서", "만나"]
    assert set(alone.split()) <= set(with_particle.split())
    assert terms.terms(["가", "3월의 A급"]) == ["가", "3 월의 a 급"]
    assert terms.method() == "stems and syllables"


def test_korean_by_morphemes() -> None:
    pytest.importorskip("kiwipiepy")
    (found,) = terms.terms(["나는 학교에서 책을 읽었다"])
    assert {"학교", "책", "읽"} <= set(found.split())
    assert "에서" not in found.split()


def test_search_terms_of_english_are_stems() -> None:
    assert terms.search_terms(["Stalled wings"]) == terms.search_terms(["stalling WING"])
    assert terms.query_terms("what is the stall") == ["stall"]
    assert terms.query_terms("to be or not to be") == ["not"]
    assert terms.query_terms("to be") == ["to", "be"]


def test_particles_never_hide_a_noun() -> None:
    """Names that the analyser does not know are found by their syllables, whatever follows them."""
    names = ["서울", "뷁쀍", "트럼펠", "챗지피티"]
    particles = ["", "은", "이", "을", "에서", "으로부터", "에게서는", "이라는"]
    for name in names:
        wanted = set(terms.query_terms(name))
        for particle in particles:
            assert wanted & set(terms.search_terms([name + particle])[0].split()), name + particle
            assert set(terms.query_terms(name + particle)) & set(terms.search_terms([name])[0].split()), name + particle


def test_words_of_any_question_are_not_looked_for() -> None:
    pytest.importorskip("kiwipiepy")
    found = terms.query_terms("잠이 오지 않을 때 어떻게 하면 좋을까?")
    assert {"잠", "잠이"} <= set(found)
    assert not {"때", "어떻", "떻게", "하면", "하", "좋"} & set(found)
    assert terms.query_terms("어떻게?") == ["어떻", "어떻", "떻게"]


@pytest.mark.parametrize("has_kiwi", [True, False])
def test_a_particle_finds_nothing_by_itself(monkeypatch: pytest.MonkeyPatch, has_kiwi: bool) -> None:
    if has_kiwi:
        pytest.importorskip("kiwipiepy")
    monkeypatch.setattr(korean, "has_kiwi", lambda: has_kiwi)
    wanted = set(terms.query_terms("수도가 어디야?"))
    found = [set(text.split()) & wanted for text in terms.search_terms(["물의 밀도가 가장 크다", "수도를 옮겼다"])]
    assert not found[0]
    assert "수도" in found[1]
    assert terms.query_terms("국가") == terms.search_terms(["국가"])[0].split()
