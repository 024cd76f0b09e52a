"""The table of chunks: right ids when hashes collide, when it is full, and while many threads fill it."""

import math
import os
import random
import threading
from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest
from tokenizers import Tokenizer

from munjang.text import lookup, structures
from munjang.text.flat import cumulative
from munjang.text.lookup import ChunkLookup, Chunks, Table, encode_whole, keys, to_codes
from tests.models import make_tokenizer
from tests.texts import KOREAN

KINDS = ["wordpiece", "unigram", "bytelevel"]


def chunked(rust: Tokenizer) -> ChunkLookup:
    structure = structures.find(rust)
    assert structure is not None
    return ChunkLookup(rust, structure)


def same(found: tuple[np.ndarray, np.ndarray], expected: tuple[np.ndarray, np.ndarray]) -> bool:
    return np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


@pytest.fixture(params=KINDS)
def rust(request: pytest.FixtureRequest) -> Tokenizer:
    return make_tokenizer(request.param)


def words(count: int, seed: int = 0) -> list[str]:
    random_ = random.Random(seed)
    return ["".join(random_.choices("abcdef가나다", k=6)) for _ in range(count)]


def chunks_of(texts: list[str]) -> Chunks:
    """Every text a chunk."""
    codes, sizes = to_codes(texts)
    return Chunks(codes, cumulative(sizes)[:-1], sizes)


def add(table: Table, hashes: list[int], others: list[int], ids: list[list[int]]) -> None:
    counts = np.array([len(one) for one in ids])
    flat = np.array(list(chain(*ids)), np.int32)
    table.add(np.array(hashes, np.uint64), np.array(others, np.uint64), flat, counts, counts)


def test_characters_and_surrogates() -> None:
    codes, sizes = to_codes(["a\ud83d", "", "\ude00나\U0001f600"])
    assert codes.tolist() == [0x61, 0xFFFD, 0xFFFD, 0xB098, 0x1F600]
    assert sizes.tolist() == [2, 0, 3]


def by_hand(text: str) -> tuple[int, int]:
    first, second = (
        sum(int(key.values[ord(letter)]) * pow(key.odd, place, 2**64) for place, letter in enumerate(text)) % 2**64
        for key in keys()
    )
    turned = (second << 7 | second >> 57) % 2**64
    return first ^ (first >> 31), turned ^ len(text)


def test_hashes_by_hand_wherever_the_chunk_is() -> None:
    texts = ["zab", "ab", "a", "가나다", "b" * 64, "ab"]
    hashes, others = chunks_of(texts).hashes()
    assert list(zip(hashes.tolist(), others.tolist(), strict=True)) == [by_hand(text) for text in texts]


def test_chunks_made_to_collide_do_not() -> None:
    """What collides under polynomials of the codes: Thue-Morse orders, and the coefficients of (x^2 - 1)^22."""
    order = [bin(place).count("1") % 2 for place in range(64)]
    thue_morse = ["".join("ab"[bit ^ flip] for bit in order) for flip in (0, 1)]
    steps = [(-1) ** power * math.comb(22, power) for power in range(23)]
    codes = [0x61 if step > 0 else 0x10FFFD for step in steps]
    moved = [code + step for code, step in zip(codes, steps, strict=True)]
    wide = ["x".join(map(chr, given)) for given in (codes, moved)]  # every second place: x^2
    difference = np.array([ord(a) - ord(b) for a, b in zip(*wide, strict=True)], object)
    assert all(sum(difference * [pow(odd, place) for place in range(45)]) % 2**64 == 0 for odd in (3, 12345, 2**63 + 7))
    texts = [*thue_morse, *wide, "ab", "ba", "a", "aa"]
    for _ in range(20):
        keys.cache_clear()  # a table of before would not know its chunks again, and learn them anew
        hashes, others = chunks_of(texts).hashes()
        assert len(set(hashes.tolist())) == len(set(others.tolist())) == len(texts)


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_every_word_has_its_own_hashes(count: int) -> None:
    words = [f"{number:x}" for number in range(count)]
    hashes, others = chunks_of(words).hashes()
    assert len(np.unique(hashes)) == len(np.unique(others)) == len(words)
    slots = np.bincount((hashes & np.uint64(1023)).astype(np.int64), minlength=1024)  # low bits choose the slot
    assert slots.std() < 3 * math.sqrt(len(words) / 1024)


def test_an_entry_is_known_by_both_hashes() -> None:
    table = Table()
    add(table, [7], [70], [[5]])
    found = table.known(np.array([7, 7, 8], np.uint64), np.array([70, 71, 70], np.uint64))
    assert found.tolist() == [0, -2, -1]


def test_a_chunk_whose_place_is_taken_goes_whole(rust: Tokenizer) -> None:
    """Should two chunks ever agree in the first hash, the second one's texts are tokenized by `tokenizers` itself."""
    table = chunked(rust)
    texts = ["the fox", "fox the", "나는 오늘"]
    expected = encode_whole(rust, texts)
    assert same(table(texts), expected)
    table.table.others[: table.table.size] ^= np.uint64(1)
    assert same(table(texts), expected)


def test_slots_that_are_taken_are_passed_over() -> None:
    table = Table()
    mask = len(table.slots)
    values = [3, 3 + mask, 4, 3 + 2 * mask]  # three want one slot, the fourth is pushed on
    hashes = np.array(values, np.uint64)
    for place, value in enumerate(values):
        add(table, [value], [place], [[place]])
    together = Table()
    add(together, values, [0, 1, 2, 3], [[0], [1], [2], [3]])
    assert table.find(hashes).tolist() == together.find(hashes).tolist() == [0, 1, 2, 3]
    assert table.find(np.array([3 + 3 * mask, 9], np.uint64)).tolist() == [-1, -1]


def test_the_table_is_bounded(rust: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MAX_ENTRIES", 64)
    table = chunked(rust)
    for seed in range(20):  # some batches hold more new chunks than the table
        texts = [" ".join(words(10, seed * 100 + row)) for row in range(1 + seed)]
        assert same(table(texts), encode_whole(rust, texts))
        assert table.table.size <= 64
        assert len(table.table.slots) == 256
        assert max(map(len, (table.table.hashes, table.table.id_starts))) <= 1024  # where they begin


def test_hostile_chunks_fill_it_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MAX_ENTRIES", 64)
    rust = make_tokenizer("bytelevel")  # a chunk of 60 emoji has 240 ids
    table = chunked(rust)
    for seed in range(10):
        texts = [" ".join(chr(0x1F600 + (seed * 7 + row) % 70) * 60 for row in range(20))]
        assert same(table(texts), encode_whole(rust, texts))
        assert table.table.num_ids <= 16 * 64


def test_long_chunks_are_not_kept(rust: Tokenizer) -> None:
    table = chunked(rust)
    texts = ["x" * 64 + " " + "y" * 65, "가" * 10000 + " b", "z" * 66]
    assert same(table(texts), encode_whole(rust, texts))
    assert table.table.size == 2


def test_every_chunk_is_tokenized_once(rust: Tokenizer) -> None:
    table = chunked(rust)
    texts = [" ".join([*KOREAN, *KOREAN]), " ".join(reversed(KOREAN))]
    table(texts)
    size = table.table.size
    assert size <= 2 * len(set(KOREAN)) + 2  # byte-level: a text's first word is another key
    table(texts[::-1])
    assert table.table.size == size


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
    monkeypatch.setattr(lookup, "MAX_ENTRIES", 128)  # so small that it starts again all the time
    table, pool = chunked(rust), words(400)
    random_ = random.Random(1)
    jobs = [[" ".join(random_.choices(pool, k=8)) for _ in range(12)] for _ in range(100)]
    expected = [encode_whole(rust, texts) for texts in jobs]

    def work(number: int) -> None:
        for place in range(7 * number, 40 + 7 * number):
            assert same(table(jobs[place % 100]), expected[place % 100])

    assert hammer(work, 10) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_does_not_wait_for_its_parents_lock(rust: Tokenizer) -> None:
    table = chunked(rust)
    expected = encode_whole(rust, ["the fox"])
    held = table.locks.setdefault(os.getpid(), threading.Lock())
    with held:  # as if another thread was learning a chunk when the process forked
        pid = os.fork()
        if not pid:
            os._exit(0 if same(table(["the fox"]), expected) else 1)
        watch = threading.Timer(30, os.kill, (pid, 9))
        watch.start()
        status = os.waitpid(pid, 0)[1]
        watch.cancel()
    assert os.waitstatus_to_exitcode(status) == 0
