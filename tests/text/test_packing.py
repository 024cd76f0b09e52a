"""Packed batches: nothing lost, nothing padded."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from munjang.text.flat import cumulative, gather
from munjang.text.packing import cut_batches, join, pack

LENGTHS = st.lists(st.integers(0, 9), max_size=12)


def packed(lengths: list[int], **more: object):
    ids = np.arange(100, 100 + sum(lengths), dtype=np.int32)
    return pack(ids, np.array(lengths, np.int64), **more)


def test_by_hand() -> None:
    batch = packed([2, 0, 3, 3], types=np.array([0, 1, 0, 0, 1, 0, 1, 1], np.int32))
    assert batch.ids_T.tolist() == [100, 101, 102, 103, 104, 105, 106, 107]
    assert batch.positions_T.tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert batch.types_T is not None
    assert batch.types_T.tolist() == [0, 1, 0, 0, 1, 0, 1, 1]
    assert batch.starts_B.tolist() == [0, 2, 2, 5, 8]
    assert (batch.num_tokens, batch.max_length) == (8, 3)
    assert batch.runs == [(0, 1, 2), (2, 2, 3)]
    assert {batch.ids_T.dtype, batch.positions_T.dtype, batch.types_T.dtype} == {torch.int64}
    assert batch.starts_B.dtype == torch.int32
    assert batch.to(torch.device("cpu")) is batch


def test_nothing_packed() -> None:
    for lengths in ([], [0], [0, 0]):
        batch = packed(lengths)
        assert (batch.num_tokens, batch.max_length, batch.runs) == (0, 0, [])
        assert len(batch.starts_B) == len(lengths) + 1


@given(LENGTHS)
def test_runs_are_all_tokens_and_nothing_else(lengths: list[int]) -> None:
    batch = packed(lengths)
    covered = [start + i for start, texts, length in batch.runs for i in range(texts * length)]
    assert covered == list(range(sum(lengths)))
    assert [length for _, texts, length in batch.runs for _ in range(texts)] == [n for n in lengths if n]


@given(LENGTHS.filter(lambda lengths: len(lengths) > 1), st.booleans())
def test_halves_are_the_whole(lengths: list[int], has_more: bool) -> None:
    more = {"types": np.arange(sum(lengths), dtype=np.int32), "skip": np.arange(len(lengths))} if has_more else {}
    batch = packed(lengths, **more)
    first, second = batch.halves()
    assert len(first.lengths) == len(lengths) // 2
    for name in ("ids_T", "positions_T", "types_T"):
        parts = [getattr(half, name) for half in (first, second)]
        whole = getattr(batch, name)
        assert parts == [None, None] if whole is None else torch.equal(torch.cat(parts), whole)
    assert np.array_equal(np.concatenate([first.lengths, second.lengths]), batch.lengths)
    for half in (first, second):
        assert half.starts_B.tolist() == cumulative(half.lengths).tolist()
        assert half.starts_B.dtype == torch.int32
    if has_more:
        assert np.concatenate([first.skip, second.skip]).tolist() == list(range(len(lengths)))


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=6))
def test_padding_spelled_out_is_no_position(texts: list[list[int]]) -> None:
    expected = []
    for text in texts:  # transformers: cumsum(not padding) * not padding, here from 0 and padding at -1
        seen = 0
        for token in text:
            expected.append(-1 if token == 1 else seen)
            seen += token != 1
    flat = np.array([token for text in texts for token in text], np.int32)
    batch = pack(flat, np.array([len(text) for text in texts], np.int64), pad_id=1)
    assert batch.positions_T.tolist() == expected


@given(LENGTHS, st.integers(1, 20))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths, np.int64)
    batches = list(cut_batches(sizes, budget))
    assert sorted(row for rows in batches for row in rows.tolist()) == list(range(len(lengths)))
    assert all(len(rows) == 1 or sizes[rows].sum() <= budget for rows in batches)
    longest_first = [int(sizes[row]) for rows in batches for row in rows]
    assert longest_first == sorted(lengths, reverse=True)
    for rows, following in itertools.pairwise(batches):  # no batch could have taken one more
        assert sizes[rows].sum() + sizes[following[0]] > budget


@given(LENGTHS, st.randoms())
def test_gather(lengths: list[int], random_: object) -> None:
    sizes = np.array(lengths, np.int64)
    rows = np.array(random_.choices(range(len(lengths)), k=4) if lengths else [], np.int64)  # type: ignore[attr-defined]
    kept = np.array([random_.randint(0, lengths[row]) for row in rows], np.int64)  # type: ignore[attr-defined]
    flat, starts = np.arange(sum(lengths), dtype=np.int32), cumulative(sizes)
    expected = [int(starts[row]) + i for row, length in zip(rows, kept, strict=True) for i in range(length)]
    assert gather(flat, starts, rows, kept).tolist() == expected


def test_budget_is_kept_by_a_long_text_alone() -> None:
    assert [rows.tolist() for rows in cut_batches(np.array([3, 9, 4, 4]), 8)] == [[1], [2, 3], [0]]
    with pytest.raises(StopIteration):
        next(cut_batches(np.zeros(0, np.int64), 8))


@given(st.lists(LENGTHS, min_size=1, max_size=4))
def test_joined_batches_hold_every_text_once(batches: list[list[int]]) -> None:
    packs, first = [], 0
    for number, lengths in enumerate(batches):
        ids = np.arange(first, first + sum(lengths))
        types = np.full(len(ids), number) if number % 2 else None
        packs.append(pack(ids, np.array(lengths, np.int64), types, np.array(lengths) if number == 2 else None))
        first += sum(lengths)
    joined, places = join(packs)
    assert joined.lengths.tolist() == sorted((length for each in batches for length in each), reverse=True)
    starts, at = cumulative(joined.lengths), 0
    assert joined.starts_B.tolist() == starts.tolist()
    for number, batch in enumerate(packs):
        for text, length in enumerate(batch.lengths.tolist()):
            place = int(places[at])
            here = slice(int(starts[place]), int(starts[place]) + length)
            there = slice(int(batch.starts_B[text]), int(batch.starts_B[text]) + length)
            assert torch.equal(joined.ids_T[here], batch.ids_T[there])
            assert torch.equal(joined.positions_T[here], batch.positions_T[there])
            if joined.types_T is not None:
                assert joined.types_T[here].tolist() == [number if number % 2 else 0] * length
            if joined.skip is not None:
                assert joined.skip[place] == (length if number == 2 else 0)
            at += 1
