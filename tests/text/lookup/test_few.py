"""A few texts by a dictionary: the ids of `tokenizers`, however often they come and however full it is."""

import random
import threading
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer

from munjang.text.lookup import few
from munjang.text.lookup.few import CALLS_PER_LEARNED, MIN_KNOWN_SPANS, FewTexts
from munjang.text.lookup.lookup import SpanLookup
from munjang.text.tokenizer import Tokenizer
from tests.models import make_tokenizer
from tests.texts import HOSTILE, PIECES, hostile, mixed

KINDS = ["wordpiece", "unigram", "bytelevel"]
TEXT = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=10).map("".join)
RUST = {kind: make_tokenizer(kind) for kind in KINDS}


def clean(text: str) -> str:
    return "".join("\ufffd" if 0xD800 <= ord(character) < 0xE000 else character for character in text)


def naive(rust: RustTokenizer, texts: list[str]) -> list[list[int]]:
    return [rust.encode(clean(text)).ids for text in texts]


def few_of(tokenizer: Tokenizer) -> FewTexts:
    assert isinstance(tokenizer.tokenize_bodies, SpanLookup)
    return tokenizer.tokenize_bodies.few_texts


def found(tokenizer: Tokenizer, texts: list[str], learns: bool) -> list[list[int]]:
    """Return ids by way of the dictionary: the spans of this call learned, or the texts taken whole."""
    few_of(tokenizer).num_misses = CALLS_PER_LEARNED - 1 if learns else 0
    tokens = tokenizer(texts)
    return [part.tolist() for part in np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=80)
@given(texts=st.lists(TEXT, min_size=1, max_size=6), learns=st.booleans())
def test_any_text(kind: str, texts: list[str], learns: bool) -> None:
    assert found(Tokenizer(RUST[kind]), texts, learns) == naive(RUST[kind], texts)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_a_few_at_a_time(kind: str) -> None:
    tokenizer, texts = Tokenizer(RUST[kind]), [*HOSTILE, *mixed(100), *hostile(1500, seed=11)]
    assert_same(tokenizer, texts)


def test_the_real_minilm(minilm: Path) -> None:
    tokenizer = Tokenizer(RustTokenizer.from_file(str(minilm / "tokenizer.json")))
    assert_same(tokenizer, [*HOSTILE, *mixed(100), *hostile(1500, seed=12)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm-l6", "mpnet-base", "e5-small"])
def test_real_tokenizers(real_models: Path, name: str) -> None:
    tokenizer = Tokenizer(RustTokenizer.from_file(str(real_models / name / "tokenizer.json")))
    assert_same(tokenizer, [*HOSTILE, *mixed(500), *hostile(20000, seed=13)])


def assert_same(tokenizer: Tokenizer, texts: list[str]) -> None:
    sizes, start = cycle([1, 2, 3, 8, 40]), 0
    while start < len(texts):
        size = next(sizes)
        some = texts[start : start + size]
        expected = naive(tokenizer.rust, some)
        assert [found(tokenizer, some, learns) for learns in (False, True, True)] == [expected] * 3
        start += size


@pytest.mark.parametrize("kind", KINDS)
def test_long_texts_are_cut(kind: str) -> None:
    tokenizer = Tokenizer(RUST[kind], max_length=6)
    texts = ["the fox", "the quick brown fox jumps over lazy dogs", "나는", "the a"]
    whole = [RUST[kind].encode(text, add_special_tokens=False).ids for text in texts]
    (before, _), (behind, _) = tokenizer.single.parts
    expected = [[*before, *ids[: 6 - len(before) - len(behind)], *behind] for ids in whole]
    assert found(tokenizer, texts, True) == expected
    assert tokenizer(texts).cut_rows.tolist() == [len(ids) > 6 - len(before) - len(behind) for ids in whole]


@pytest.mark.parametrize("kind", KINDS)
def test_spans_are_learned_in_turns_and_then_known(kind: str) -> None:
    tokenizer, texts = Tokenizer(RUST[kind]), ["the quick fox", "나는 오늘 학교에"]
    known = few_of(tokenizer)
    for _ in range(CALLS_PER_LEARNED - 1):
        tokenizer(texts)
    assert len(known.known) == 0
    tokenizer(texts)
    assert len(known.known) == 6
    tokenizer(texts)
    assert known.num_misses == CALLS_PER_LEARNED  # looked up, and nobody asked whose turn it is


def test_a_call_that_is_mostly_known_is_learned_from_at_once() -> None:
    tokenizer, texts = Tokenizer(RUST["wordpiece"]), ["the quick fox jumps"] * MIN_KNOWN_SPANS
    found(tokenizer, texts, True)
    tokenizer([*texts, "over lazy"])
    assert list(few_of(tokenizer).known) == ["the", "quick", "fox", "jumps", "over", "lazy"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_dictionary_is_bounded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "MAX_SPANS", 50)
    tokenizer, draw = Tokenizer(RUST[kind]), random.Random(0)
    for _ in range(50):
        texts = [" ".join("".join(draw.choices("abcd가나", k=4)) for _ in range(8)) for _ in range(3)]
        assert found(tokenizer, texts, True) == naive(RUST[kind], texts)
        assert 0 < len(few_of(tokenizer).known) <= 50


def test_hostile_words_fill_it_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "MAX_ID_BYTES", 4000)
    tokenizer = Tokenizer(RUST["bytelevel"])  # a word of 60 emoji has 240 ids
    for row in range(20):
        texts = [" ".join(chr(0x1F600 + row * 3 + place) * 60 for place in range(3))]
        assert found(tokenizer, texts, True) == naive(tokenizer.rust, texts)
        assert len(few_of(tokenizer).known) <= 8


def test_long_words_are_not_kept() -> None:
    tokenizer, texts = Tokenizer(RUST["wordpiece"]), ["x" * 64 + " " + "y" * 65, "가" * 90]
    assert found(tokenizer, texts, True) == naive(tokenizer.rust, texts)
    assert list(few_of(tokenizer).known) == ["x" * 64]


@pytest.mark.parametrize("kind", KINDS)
def test_many_threads_share_one_dictionary(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "MAX_SPANS", 60)  # so few that it starts again all the time
    tokenizer, draw = Tokenizer(RUST[kind]), random.Random(1)
    pool = ["".join(draw.choices("abcdef가나다", k=5)) for _ in range(200)]
    jobs = [[" ".join(draw.choices(pool, k=6)) for _ in range(3)] for _ in range(60)]
    expected = [[tuple(ids) for ids in naive(RUST[kind], texts)] for texts in jobs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for place in range(number, number + len(jobs)):
            tokens = tokenizer(jobs[place % len(jobs)])
            parts = np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
            if [tuple(part.tolist()) for part in parts] != expected[place % len(jobs)]:
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
