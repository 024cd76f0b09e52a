"""Laws of the samplers: nothing lost, nothing twice, what a batch promises, and the same again for the same seed."""

import itertools
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.data.examples import Examples, number_texts
from munjang.data.sampling import SAMPLERS, batches, rows_of_process, shortage
from munjang.errors import InputError


def pairs(first: list[int], second: list[int]) -> Examples:
    """Few different texts, so that many rows share one."""
    texts = ([f"text {number}" for number in first], [f"text {number}" for number in second])
    return Examples("pairs", texts, labels=np.array(first, np.int64))


ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=1, max_size=60)
EXAMPLES = ROWS.map(lambda rows: pairs([a for a, _ in rows], [b for _, b in rows]))
SEEDS = st.integers(0, 2**40)
MANY = pairs([row % 31 for row in range(400)], list(range(400)))


@pytest.mark.parametrize("kind", SAMPLERS)
@given(examples=EXAMPLES, size=st.integers(2, 9), seed=SEEDS, epoch=st.integers(0, 3))
def test_every_row_once_in_batches_that_are_not_too_large(
    kind: str, examples: Examples, size: int, seed: int, epoch: int
) -> None:
    drawn = batches(examples, size, kind, seed, epoch)
    assert sorted(np.concatenate(drawn).tolist()) == list(range(len(examples)))
    assert all(0 < len(rows) <= size and rows.dtype == np.int64 for rows in drawn)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_seed_and_epoch_decide(kind: str) -> None:
    def drawn(seed: int, epoch: int) -> list[list[int]]:
        return [rows.tolist() for rows in batches(MANY, 16, kind, seed, epoch)]

    assert drawn(3, 1) == drawn(3, 1)
    assert drawn(3, 1) != drawn(3, 2)
    assert drawn(3, 1) != drawn(4, 1)


@given(examples=EXAMPLES, size=st.integers(1, 9), seed=SEEDS)
def test_no_text_is_in_two_rows_of_a_batch(examples: Examples, size: int, seed: int) -> None:
    for rows in batches(examples, size, "no_duplicates", seed):
        texts = [{column[row] for column in examples.texts} for row in rows.tolist()]
        assert sum(map(len, texts)) == len(set().union(*texts))


@pytest.mark.parametrize(
    ("num_rows", "size", "smallest"), [(401, 16, 8), (17, 16, 8), (9, 8, 4), (16, 16, 16), (1, 8, 1)]
)
def test_no_row_is_left_alone(num_rows: int, size: int, smallest: int) -> None:
    """The one that is left over gets company from the others, one of each as long as there are enough of them."""
    drawn = batches(pairs(list(range(num_rows)), list(range(1000, 1000 + num_rows))), size, "no_duplicates")
    assert min(map(len, drawn)) == smallest
    assert len(drawn) == -(-num_rows // size)
    if num_rows == 401:
        assert sorted(map(len, drawn)) == [8] + [15] * 7 + [16] * 18


@given(examples=EXAMPLES, size=st.integers(2, 9), seed=SEEDS)
def test_a_batch_is_small_only_where_it_has_to_be(examples: Examples, size: int, seed: int) -> None:
    """Below half, and below what all could have, only where every row of the larger ones shares a text with it."""
    drawn = [rows.tolist() for rows in batches(examples, size, "no_duplicates", seed)]
    texts = [{column[row] for column in examples.texts} for row in range(len(examples))]
    least = min((size + 1) // 2, len(examples) // len(drawn))
    for small in (rows for rows in drawn if len(rows) < least):
        present = set().union(*(texts[row] for row in small))
        assert all(texts[row] & present for large in drawn if len(large) > least for row in large)


def test_a_text_in_many_rows_is_told() -> None:
    common = pairs([0] * 10 + list(range(1, 31)), list(range(100, 140)))
    assert [len(rows) for rows in batches(common, 16, "no_duplicates")] == [4] * 10
    numbers = number_texts([text for column in common.texts for text in column]).reshape(2, -1).T
    assert shortage(numbers, 16) == (
        "one text is in 10 of 40 rows, so that batches without duplicates hold about 4 rows, not 16; "
        "sampler random keeps them full"
    )
    assert shortage(numbers, 4) is None
    twice = np.arange(4)[:, None].repeat(2, axis=1)  # a text that is in both columns of a row is in one row
    assert shortage(twice, 4) is None
    assert shortage(np.zeros((1, 1), np.int64), 16) is None


def test_duplicates_cost_no_batches_where_they_need_not() -> None:
    drawn = batches(
        MANY, 16, "no_duplicates"
    )  # a text is in 13 or 14 of 400 rows, so 25 full batches can have them all
    assert len(drawn) <= 26
    common = pairs([0] * 10 + list(range(1, 31)), list(range(100, 140)))
    assert len(batches(common, 16, "no_duplicates")) == 10  # not fewer: one text is in ten rows


def test_no_duplicates_is_fast() -> None:
    """Half of all rows have one of a hundred texts: to try every batch for each of them would take minutes."""
    random = np.random.default_rng(0)
    first = np.where(random.random(100_000) < 0.5, random.integers(0, 100, 100_000), np.arange(1000, 101_000))
    examples = pairs(first.tolist(), list(range(200_000, 300_000)))
    start = time.process_time()
    drawn = batches(examples, 1024, "no_duplicates")
    assert time.process_time() - start < 5  # 0.4 s where this was written
    assert sum(map(len, drawn)) == 100_000


@given(examples=EXAMPLES, size=st.integers(3, 9), seed=SEEDS)
def test_labels_come_at_least_twice(examples: Examples, size: int, seed: int) -> None:
    labels = examples.labels
    assert labels is not None
    total = Counter(labels.tolist())
    for rows in batches(examples, size, "by_label", seed):
        for label, count in Counter(labels[rows].tolist()).items():
            assert count >= 2 or total[label] == 1


@pytest.mark.parametrize("size", [2, 5, 8, 15])
def test_batches_by_label_are_full(size: int) -> None:
    drawn = batches(MANY, size, "by_label")
    assert sum(len(rows) for rows in drawn if len(rows) < size) <= 0.1 * len(MANY)


def test_neighbours_in_length_share_a_batch() -> None:
    lengths = np.random.default_rng(1).integers(1, 50, len(MANY))
    drawn = batches(MANY, 7, "by_length", lengths=lengths)
    by_length = sorted(drawn, key=lambda rows: (lengths[rows].min(), lengths[rows].max()))
    for shorter, longer in itertools.pairwise(by_length):
        assert lengths[shorter].max() <= lengths[longer].min()
    assert by_length[0].tolist() != drawn[0].tolist()
    words = Examples("words", (["aaaa", "a", "aaa", "aa"], ["a"] * 4))
    found = {frozenset(rows.tolist()) for rows in batches(words, 2, "by_length")}  # by characters where not given
    assert found == {frozenset({1, 3}), frozenset({0, 2})}


def test_any_batch_may_be_the_small_one() -> None:
    lengths = np.arange(10)
    examples = pairs(list(range(10)), list(range(10)))
    smallest = {9 in min(batches(examples, 4, "by_length", 0, epoch, lengths=lengths), key=len) for epoch in range(9)}
    assert smallest == {True, False}


def test_rows_that_follow_each_other_share_a_batch() -> None:
    cuts = set()
    for epoch in range(5):
        drawn = batches(MANY, 16, "in_order", 0, epoch)
        assert all(np.isin(np.diff(rows), (1, 1 - len(MANY))).all() for rows in drawn)  # the end is beside the start
        assert {len(rows) for rows in batches(pairs([0] * 33, [0] * 33), 16, "in_order", 0, epoch)} == {11}
        cuts.add(min(rows[0] for rows in drawn if len(np.unique(np.diff(rows))) == 1))
    assert len(cuts) > 1


@settings(max_examples=200)
@given(st.lists(st.integers(0, 10**9), max_size=40), st.integers(1, 9))
def test_shares_are_the_batch(rows: list[int], world: int) -> None:
    parts = [rows_of_process(np.array(rows, np.int64), rank, world) for rank in range(world)]
    assert np.concatenate(parts).tolist() == rows
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_equal_texts_have_equal_numbers() -> None:
    assert number_texts(["b", "a", "b", "", "a"]).tolist() == [0, 1, 0, 2, 1]
    assert number_texts([]).dtype == np.int64


def test_what_can_not_be_drawn() -> None:
    texts = Examples("texts", (["a", "b"],))
    for size, kind, message in [
        (2, "randomly", "Did you mean 'random'"),
        (0, "random", "at least 1 example"),
        (2, "by_label", "needs labels"),
    ]:
        with pytest.raises(InputError, match=message):
            batches(texts, size, kind)
    with pytest.raises(InputError, match="at least 2 examples"):
        batches(MANY, 1, "by_label")
    with pytest.raises(InputError, match="3 lengths for 2 rows"):
        batches(texts, 2, "by_length", lengths=np.arange(3))
    with pytest.raises(InputError, match="Process 2 of 2"):
        rows_of_process(np.arange(4), 2, 2)
