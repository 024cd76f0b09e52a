"""The table of chunks: right ids when hashes collide, when it is full, and while many threads fill it."""

import os
import random
import threading
from collections.abc import Callable
from itertools import chain

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from munjang.text import lookup, structures
from munjang.text.lookup import ChunkLookup, Chunks, Codes, Flat, Table, encode_whole, to_codes
from tests.models import make_tokenizer
from tests.texts import HOSTILE, KOREAN, hostile, mixed

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


def chunks_of(codes: Codes, begins: list[int], sizes: list[int]) -> Chunks:
    """Chunks that cover the characters from the first one on, but for spaces."""
    edges = np.array([*begins, len(codes)])
    chunk_of = np.repeat(np.arange(len(begins)), np.diff(edges))
    return Chunks(codes, np.array(begins), np.array(sizes), chunk_of, np.arange(len(codes)) - edges[chunk_of])


def add(table: Table, hashes: NDArray[np.uint64], codes: list[list[int]], ids: list[list[int]]) -> None:
    counts = np.array([len(one) for one in ids])
    flat = Flat(np.array(list(chain(*codes)), np.uint32), np.array([len(one) for one in codes]))
    table.add(hashes, flat, Flat(np.array(list(chain(*ids)), np.int32), counts), counts)


def test_characters_and_surrogates() -> None:
    codes, sizes = to_codes(["a\ud83d", "", "\ude00나\U0001f600"])
    assert codes.tolist() == [0x61, 0xFFFD, 0xFFFD, 0xB098, 0x1F600]
    assert sizes.tolist() == [2, 0, 3]


def test_hash_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.arange(1, 65, dtype=np.uint64) << np.uint64(40)
    monkeypatch.setattr(lookup, "KEYS", keys)
    codes, _ = to_codes(["zab"])
    value = (98 * int(keys[0]) + 99 * int(keys[1])) % 2**64  # every character counts one more than its code
    assert chunks_of(codes, [0, 1], [1, 2]).hashes().tolist()[1] == value ^ (value >> 31)
    assert value not in chunks_of(codes, [0, 1, 2], [1, 1, 1]).hashes().tolist()


@pytest.mark.parametrize("keys", [0, 1, 1 << 20, 1 << 63])
def test_colliding_chunks_keep_their_own_ids(rust: Tokenizer, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "KEYS", np.full(lookup.MAX_CHUNK, keys, np.uint64))
    texts = ["ab ba", "ba ab", "the fox", "fox the", "eht xof", "나는 는나", *mixed(40), *HOSTILE, *hostile(300)]
    table = chunked(rust)
    assert same(table(texts), encode_whole(rust, texts))
    assert same(table(texts[::-1]), encode_whole(rust, texts[::-1]))  # warm, and another chunk is first
    assert [same(table([text]), encode_whole(rust, [text])) for text in texts] == [True] * len(texts)


def test_a_collision_is_seen_by_its_characters() -> None:
    table = Table()
    hashes = np.array([7], np.uint64)
    add(table, hashes, [[97, 98]], [[5]])
    codes, _ = to_codes(["ab ba a", "xy"])
    entries = table.find(np.array([7, 7, 7, 8], np.uint64))
    assert entries.tolist() == [0, 0, 0, -1]
    chunks = chunks_of(codes, [0, 3, 6, 7], [2, 2, 1, 2])
    assert chunks.gaps().tolist() == [2, 5]
    assert chunks.verified(table, entries).tolist() == [0, -1, -1, -1]


def test_slots_that_are_taken_are_passed_over() -> None:
    table = Table()
    mask = len(table.slots)
    hashes = np.array([3, 3 + mask, 4, 3 + 2 * mask], np.uint64)  # three want one slot, the fourth is pushed on
    for place, value in enumerate(hashes):
        add(table, np.array([value]), [[place]], [[place]])
    together = Table()
    add(together, hashes, [[0], [1], [2], [3]], [[0], [1], [2], [3]])
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
        assert max(table.table.num_ids, table.table.num_codes) <= 16 * 64


def test_long_chunks_are_not_kept(rust: Tokenizer) -> None:
    table = chunked(rust)
    texts = ["x" * 64 + " " + "y" * 65, "가" * 10000 + " b", "z" * 66]
    assert same(table(texts), encode_whole(rust, texts))
    kept = table.table.code_counts[: table.table.size]
    assert kept.max() <= lookup.MAX_CHUNK


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
        for place in range(number, 100 + number):
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
