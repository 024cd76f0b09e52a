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
    assert terms.method() == "syllables"


def test_korean_by_morphemes() -> None:
    pytest.importorskip("kiwipiepy")
    (found,) = terms.terms(["나는 학교에서 책을 읽었다"])
    assert {"학교", "책", "읽"} <= set(found.split())
    assert "에서" not in found.split()
