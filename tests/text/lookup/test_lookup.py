"""The look-up: right ids when hashes collide, when the table is full, and while many threads fill it."""

import os
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from tokenizers import Tokenizer

from munjang.text.lookup import table
from munjang.text.lookup.lookup import MAX_FEW_CHARACTERS, SpanLookup, WholeTexts, body_tokenizer, encode_whole
from tests.models import make_tokenizer
from tests.texts import KOREAN, mixed

KINDS = ["wordpiece", "unigram", "bytelevel"]
SOME = [*mixed(5, longest=12), "the fox", ""]


def lookup_of(rust: Tokenizer) -> SpanLookup:
    lookup = body_tokenizer(rust)
    assert isinstance(lookup, SpanLookup)
    return lookup


def same(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> bool:
    return np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


@pytest.fixture(params=KINDS)
def rust(request: pytest.FixtureRequest) -> Tokenizer:
    return make_tokenizer(request.param)


def words(count: int, seed: int = 0) -> list[str]:
    random_ = random.Random(seed)
    return ["".join(random_.choices("abcdef가나다", k=6)) for _ in range(count)]


def test_a_span_whose_place_is_taken_goes_whole(rust: Tokenizer) -> None:
    """Should two spans ever agree in the first hash, the second one's texts are tokenized by `tokenizers` itself."""
    lookup = lookup_of(rust)
    texts = ["the fox", "fox the", "나는 오늘"]
    expected = encode_whole(rust, texts)
    assert same(lookup.look_up(texts), expected)
    lookup.table.second_hashes[: lookup.table.num_entries] ^= np.uint64(1)
    assert same(lookup.look_up(texts), expected)


def test_the_table_is_bounded(rust: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_ENTRIES", 64)
    lookup = lookup_of(rust)
    for seed in range(20):  # some batches hold more new spans than the table
        texts = [" ".join(words(10, seed * 100 + row)) for row in range(1 + seed)]
        assert same(lookup.look_up(texts), encode_whole(rust, texts))
        assert lookup.table.num_entries <= 64
        assert len(lookup.table.slots) == 256
        assert max(map(len, (lookup.table.hashes, lookup.table.id_starts))) <= 1024  # where they begin


def test_hostile_spans_fill_it_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_ENTRIES", 64)
    rust = make_tokenizer("bytelevel")  # a span of 60 emoji has 240 ids
    lookup = lookup_of(rust)
    for seed in range(10):
        texts = [" ".join(chr(0x1F600 + (seed * 7 + row) % 70) * 60 for row in range(20))]
        assert same(lookup.look_up(texts), encode_whole(rust, texts))
        assert lookup.table.num_ids <= 16 * 64


def test_long_spans_are_not_kept(rust: Tokenizer) -> None:
    lookup = lookup_of(rust)
    texts = ["x" * 64 + " " + "y" * 65, "가" * 10000 + " b", "z" * 66]
    assert same(lookup.look_up(texts), encode_whole(rust, texts))
    assert lookup.table.num_entries == 2


def test_every_span_is_tokenized_once(rust: Tokenizer) -> None:
    lookup = lookup_of(rust)
    texts = [" ".join([*KOREAN, *KOREAN]), " ".join(reversed(KOREAN))]
    lookup.look_up(texts)
    size = lookup.table.num_entries
    assert size <= 2 * len(set(KOREAN)) + 2  # byte-level: a text's first word is another key
    lookup.look_up(texts[::-1])
    assert lookup.table.num_entries == size


def hammer(work: Callable[[int], None], count: int) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # whatever it is, the test shows it
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return errors


def test_many_threads_share_one_table(rust: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_ENTRIES", 128)  # so small that it starts again all the time
    lookup, pool = lookup_of(rust), words(400)
    random_ = random.Random(1)
    jobs = [[" ".join(random_.choices(pool, k=8)) for _ in range(12)] for _ in range(100)]
    expected = [encode_whole(rust, texts) for texts in jobs]

    def work(number: int) -> None:
        for place in range(7 * number, 40 + 7 * number):
            assert same(lookup.look_up(jobs[place % 100]), expected[place % 100])

    assert hammer(work, 10) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_does_not_wait_for_its_parents_lock(rust: Tokenizer) -> None:
    lookup = lookup_of(rust)
    expected = encode_whole(rust, ["the fox"])
    held = lookup.locks.setdefault(os.getpid(), threading.Lock())
    with held:  # as if another thread was learning a span when the process forked
        pid = os.fork()
        if not pid:
            os._exit(0 if same(lookup.look_up(["the fox"]), expected) else 1)
        watch = threading.Timer(30, os.kill, (pid, 9))
        watch.start()
        status = os.waitpid(pid, 0)[1]
        watch.cancel()
    assert os.waitstatus_to_exitcode(status) == 0


def assert_same(lookup: SpanLookup | WholeTexts, texts: list[str]) -> None:
    flat, lengths = lookup(texts)
    assert same((flat, lengths), encode_whole(lookup.tokenizer, texts))
    assert flat.dtype == np.int32
    assert flat.flags.writeable


def test_a_few_texts_go_by_the_dictionary(rust: Tokenizer) -> None:
    lookup = lookup_of(rust)
    for _ in range(40):
        assert_same(lookup, SOME)
    assert lookup.table.num_entries == 0
    assert len(lookup.few_texts.known) > 5


def test_many_texts_go_by_the_table(rust: Tokenizer) -> None:
    lookup = lookup_of(rust)
    assert_same(lookup, SOME * (MAX_FEW_CHARACTERS // sum(map(len, SOME)) + 1))
    assert lookup.table.num_entries > 5
    assert len(lookup.few_texts.known) == 0


def test_empty_texts_alone(rust: Tokenizer) -> None:
    for lookup in (lookup_of(rust), WholeTexts(rust)):
        for texts in (["", ""], [""], [], [" "], ["  ", " a"]):
            assert_same(lookup, texts)
