"""Spans: characters in one row, and hashes that nobody can make collide."""

import math

import numpy as np
import pytest

from munjang.text.flat import cumulative
from munjang.text.lookup.spans import Spans, keys, to_codes


def spans_of(texts: list[str]) -> Spans:
    """Make every text a span."""
    codes, sizes = to_codes(texts)
    return Spans(codes, cumulative(sizes)[:-1], sizes, np.arange(len(texts)))


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


def test_hashes_by_hand_wherever_the_span_is() -> None:
    texts = ["zab", "ab", "a", "가나다", "b" * 64, "ab"]
    hashes, others = spans_of(texts).hashes()
    assert list(zip(hashes.tolist(), others.tolist(), strict=True)) == [by_hand(text) for text in texts]


def test_spans_made_to_collide_do_not() -> None:
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
        keys.cache_clear()  # a table of before would not know its spans again, and learn them anew
        hashes, others = spans_of(texts).hashes()
        assert len(set(hashes.tolist())) == len(set(others.tolist())) == len(texts)


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_every_word_has_its_own_hashes(count: int) -> None:
    words = [f"{number:x}" for number in range(count)]
    hashes, others = spans_of(words).hashes()
    assert len(np.unique(hashes)) == len(np.unique(others)) == len(words)
    slots = np.bincount((hashes & np.uint64(1023)).astype(np.int64), minlength=1024)  # low bits choose the slot
    assert slots.std() < 3 * math.sqrt(len(words) / 1024)


def test_characters_of_later_planes_keep_their_numbers() -> None:
    """A hash is the same before and after numbers were drawn for more characters."""
    keys.cache_clear()
    key = keys()[0]
    codes = np.array([0x61, 0xAC00, 0xFFFD], np.uint32)
    before = key.take(codes)
    size = len(key.values)
    emoji, last = key.take(np.array([0x1F600], np.uint32)), key.take(np.array([0x10FFFF], np.uint32))
    assert size < len(key.values) == 0x110000
    assert np.array_equal(key.take(codes), before)
    assert key.take(np.array([0x1F600, 0x10FFFF], np.uint32)).tolist() == [*emoji.tolist(), *last.tolist()]
    assert len({*before.tolist(), *emoji.tolist(), *last.tolist()}) == 5
    keys.cache_clear()
