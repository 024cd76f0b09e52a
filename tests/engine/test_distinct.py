"""Different items of a call, found piece by piece."""

import random

import pytest

from munjang.engine.distinct import Distinct


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("num_kinds", [2, 30, 10_000])
def test_pieces_are_those_of_the_whole(size: int, num_kinds: int) -> None:
    items = [f"item {random.Random(place * 31 + num_kinds).randrange(num_kinds)}" for place in range(60)]
    expected = list(dict.fromkeys(items))
    distinct, found, bounds = Distinct(items), list[str](), [len(items)]
    for start in range(0, len(items), size):
        found += distinct.take(start, start + size)
        bounds.append(len(distinct))
    assert found == expected == distinct.all()
    assert bounds == sorted(bounds, reverse=True)  # never fewer than there are, and exact in the end
    assert bounds[-1] == len(distinct) == len(expected)
    rows = distinct.rows()
    assert (rows is None) == (len(expected) == len(items))
    if rows is not None:
        assert [expected[row] for row in rows] == items


def test_only_what_is_asked_for_is_seen() -> None:
    distinct = Distinct(["a", "b", "a", "c", "d"])
    assert distinct.take(0, 2) == ["a", "b"]
    assert distinct.num_seen == 2
    assert distinct.take(2, 3) == ["c"]
    assert distinct.rows() is not None


def test_none_at_all_and_known_ones() -> None:
    assert Distinct([]).all() == []
    assert Distinct([]).rows() is None
    known = Distinct.checked(["a", "b"])
    assert (known.take(1, 9), len(known), known.known) == (["b"], 2, set())
