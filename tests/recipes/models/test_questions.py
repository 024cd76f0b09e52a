"""Questions that are made from sentences, and gathered passages."""

import numpy as np
import pytest

from recipes.models.asked import analysed, english_query, korean_query
from recipes.models.gathered import _passages

ENGLISH = "The scheduler restarts every failed worker after ten seconds."


def test_english_questions() -> None:
    words = set(ENGLISH.rstrip(".").split())
    kinds = set()
    for seed in range(30):
        query = english_query(ENGLISH, np.random.default_rng(seed))
        assert query is not None
        kinds.add(query.endswith("?"))
        missing = words - set(query.rstrip("?").split())
        if query.endswith("?"):
            assert "what" in query.rstrip("?").split()
            assert len(missing) == 1
        else:
            assert set(query.split()) < words
            assert "The" not in query.split()
    assert kinds == {True, False}
    assert english_query("It is so.", np.random.default_rng(0)) is None


def test_korean_questions() -> None:
    pytest.importorskip("kiwipiepy")
    sentence = "서버는 장애가 발생한 작업자를 십 초 뒤에 다시 시작합니다."
    queries = [
        korean_query(tokens, np.random.default_rng(seed)) for seed, tokens in enumerate(analysed([sentence] * 30))
    ]
    asked = [query for query in queries if query and query.endswith("?")]
    nouns = [query for query in queries if query and not query.endswith("?")]
    assert asked
    assert nouns
    assert all(any(word in query for word in ("무엇", "누구", "누가", "어디", "언제", "어떤 것")) for query in asked)
    assert all("합니다" not in query for query in asked)
    assert all(set(query.split()) <= {"서버", "장애", "발생", "작업자", "초", "뒤", "시작"} for query in nouns)


def test_every_sentence_is_in_one_passage() -> None:
    sentences = [f"sentence {number}." for number in range(50)]
    found = list(_passages(sentences, "ko", np.random.default_rng(1)))
    together = " ".join(passage for passage, _ in found)
    assert sorted(f"{part.strip()}." for part in together.split(".") if part) == sorted(sentences)
    for passage, places in found:
        assert all(sentences[place] in passage for place in places)
        assert 1 <= len(places) <= 6
