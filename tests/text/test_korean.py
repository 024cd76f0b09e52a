"""One analyser for all who cut Korean, from any thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("kiwipiepy")
from munjang.tasks.nouns import nouns
from munjang.text import korean
from munjang.text.terms import terms

TEXTS = ["대한민국의 수도는 서울특별시이다.", "학교에서 친구와 점심을 먹었다.", "새로 나온 휴대전화를 샀다."] * 20


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
