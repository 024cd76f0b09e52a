"""The look-up on a GPU, here by Triton's interpreter: the ids of `tokenizers`, whatever the texts."""

import threading

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as RustTokenizer

from munjang.text.lookup import device, table
from munjang.text.lookup.device import Bodies, DeviceLookup
from munjang.text.lookup.lookup import SpanLookup, body_tokenizer, encode_whole
from tests.models import make_tokenizer
from tests.texts import HOSTILE, hostile, mixed

CPU = torch.device("cpu")
TEXTS = [*HOSTILE, *hostile(300), *mixed(60, longest=25), "", ""]
pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let long texts go whole: every step takes the interpreter some milliseconds."""
    monkeypatch.setattr(device, "MAX_TEXT_CHARACTERS", 150)


@pytest.fixture(params=["wordpiece", "unigram", "bytelevel"])
def rust(request: pytest.FixtureRequest) -> RustTokenizer:
    return make_tokenizer(request.param)


def lookup_of(rust: RustTokenizer) -> DeviceLookup:
    lookup = body_tokenizer(rust)
    assert isinstance(lookup, SpanLookup)
    return DeviceLookup(lookup, CPU)


def assert_same(lookup: DeviceLookup, texts: list[str]) -> Bodies:
    bodies = lookup(texts)
    ids, lengths = bodies.to_host()
    wanted, wanted_lengths = encode_whole(lookup.lookup.tokenizer, texts)
    np.testing.assert_array_equal(lengths, wanted_lengths)
    np.testing.assert_array_equal(ids, wanted)
    assert bodies.max_id >= wanted.max(initial=0)
    return bodies


def test_ids_are_those_of_tokenizers(rust: RustTokenizer) -> None:
    lookup = lookup_of(rust)
    for texts in (TEXTS, TEXTS[::-1], TEXTS):  # unknown spans, in another order, all known
        assert_same(lookup, texts)


@pytest.mark.parametrize("texts", [[], [""], ["", ""], [" "], ["a"], ["ab"], ["a b"], ["", "the fox", ""], ["😀"]])
def test_few_characters(rust: RustTokenizer, texts: list[str]) -> None:
    assert_same(lookup_of(rust), texts)


def test_characters_of_every_width(rust: RustTokenizer) -> None:
    """One byte each, two and four; lone surrogates beside each other make no pair."""
    lookup = lookup_of(rust)
    for texts in (["the fox"], ["the fox", "나는 오늘"], ["the 😀 fox 𠀀"], ["\ud83d \ude00 \ud83d\ude00 the"]):
        assert_same(lookup, texts)
    assert_same(lookup, ["\ud83d" + "\ude00" + " 😀"])


def test_known_spans_need_nothing_of_the_host(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    lookup, texts = lookup_of(rust), mixed(50, longest=25)
    assert_same(lookup, texts)
    wanted = lookup(texts).to_host()[0]
    monkeypatch.setattr(lookup.lookup, "learn", None)
    monkeypatch.setattr(lookup.lookup, "look_up", None)
    np.testing.assert_array_equal(lookup(texts[::-1] + texts).to_host()[0][-len(wanted) :], wanted)


def test_long_texts(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "MAX_TEXT_CHARACTERS", 1 << 18)
    words = " ".join(mixed(40, longest=5))
    assert_same(lookup_of(rust), [words, "", words[:200], words + "x" * 65])


def test_groups_of_texts(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "MAX_CHARACTERS_AT_ONCE", 1000)
    monkeypatch.setattr(device, "MAX_TEXT_CHARACTERS", 90)
    assert_same(lookup_of(rust), [*TEXTS[-100:], "a" * 2000, ""])


def test_a_device_without_memory(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer characters at once, until it has enough; and an error if it never has."""
    lookup, texts, most = lookup_of(rust), mixed(40, longest=25), 300_000
    look_up = lookup._look_up

    def within(given: list[str], sizes_B: np.ndarray) -> Bodies:
        if lookup.max_characters > most:
            raise torch.OutOfMemoryError("none left")
        return look_up(given, sizes_B)

    monkeypatch.setattr(lookup, "_look_up", within)
    assert_same(lookup, texts)
    assert 1 << 16 < lookup.max_characters <= most
    most = 0
    with pytest.raises(torch.OutOfMemoryError):
        lookup(texts)


def test_a_table_that_is_full(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy follows when the table starts again; spans for which there is no room go whole."""
    monkeypatch.setattr(table, "MAX_ENTRIES", 64)
    lookup = lookup_of(rust)
    for seed in range(3):
        assert_same(lookup, hostile(40, seed=seed))
    assert lookup.mirror.num_entries <= 64


def test_more_unknown_spans_than_are_told_at_once(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is told in the next rounds, or goes whole."""
    monkeypatch.setattr(device, "MAX_UNKNOWN_AT_ONCE", 8)
    lookup, texts = lookup_of(rust), mixed(20, longest=25)
    assert_same(lookup, texts)
    assert 0 < lookup.mirror.num_entries <= 8 * device.MAX_ROUNDS


def test_spans_that_share_a_hash_go_whole(rust: RustTokenizer) -> None:
    lookup, texts = lookup_of(rust), ["the fox", "fox the", "나는 오늘"]
    assert_same(lookup, texts)
    lookup.mirror.columns["second_hashes"] = lookup.mirror.columns["second_hashes"] ^ 1
    assert_same(lookup, texts)


def test_spans_far_from_their_slot(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly as many spans as slots: the device looks as far as the furthest."""
    lookup, texts = lookup_of(rust), mixed(60, longest=25)
    lookup.lookup.table.slots = np.full(128, -1, np.int32)
    monkeypatch.setattr(table, "MAX_ENTRIES", 120)
    lookup.mirror = device.Mirror(lookup.lookup.table, CPU)
    assert_same(lookup, texts[:20])
    monkeypatch.setattr(lookup.lookup, "learn", None)
    assert_same(lookup, texts[:20])


def test_the_host_may_learn_meanwhile(rust: RustTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads on the device's way and on the host's share one table, which starts again all the time."""
    monkeypatch.setattr(table, "MAX_ENTRIES", 128)
    lookup, errors = lookup_of(rust), list[BaseException]()

    def work(seed: int) -> None:
        try:
            for turn in range(2):
                texts = hostile(30, seed=10 * seed + turn)
                if seed % 2:
                    assert_same(lookup, texts)
                else:
                    ids, _ = lookup.lookup.look_up(texts)
                    np.testing.assert_array_equal(ids, encode_whole(rust, texts)[0])
        except BaseException as error:  # whatever it is, the test shows it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
