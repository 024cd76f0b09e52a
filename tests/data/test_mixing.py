"""The dataset that each step draws from: worked out by hand, and the laws that hold for all sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from munjang.data.mixing import MIXES, mix, turns
from munjang.errors import InputError

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=5)


def counts(sizes: list[int], kind: str, temperature: float = 1.0) -> list[int]:
    return np.bincount(mix(sizes, kind, 7, 3, temperature), minlength=len(sizes)).tolist()


@given(SIZES, st.integers(0, 9))
def test_proportional_sees_every_batch_once(sizes: list[int], seed: int) -> None:
    order = mix(sizes, "proportional", seed)
    assert np.bincount(order, minlength=len(sizes)).tolist() == sizes


def test_round_robin_goes_on_until_the_largest_is_seen() -> None:
    assert mix([2, 3, 1], "round_robin").tolist() == [0, 1, 2] * 3


def test_round_robin_may_end_with_the_smallest() -> None:
    assert mix([2, 3, 4], "round_robin_shortest").tolist() == [0, 1, 2] * 2


@given(SIZES, st.floats(0.05, 50))
def test_temperature_keeps_the_number_of_steps(sizes: list[int], temperature: float) -> None:
    exact = np.array(sizes, float) ** (1 / temperature)
    exact *= sum(sizes) / exact.sum()
    found = counts(sizes, "temperature", temperature)
    assert sum(found) == sum(sizes)
    assert np.abs(np.array(found) - exact).max() <= 1 + 1e-6


def test_temperature_by_hand() -> None:
    assert counts([10, 40], "temperature", 1) == [10, 40]
    assert counts([10, 40], "temperature", 2) == [17, 33]  # 50 in the ratio 1 : 2 is 16.7 and 33.3
    assert counts([10, 40], "temperature", 1e9) == [25, 25]
    assert counts([10, 40], "temperature", 1e-3) == [0, 50]


@pytest.mark.parametrize("kind", MIXES)
def test_same_seed_same_order(kind: str) -> None:
    assert mix([9, 30], kind, 1, 2).tolist() == mix([9, 30], kind, 1, 2).tolist()
    if not kind.startswith("round_robin"):
        assert mix([9, 30], kind, 1, 2).tolist() != mix([9, 30], kind, 1, 3).tolist()
        assert mix([9, 30], kind, 1, 2).tolist() != mix([9, 30], kind, 2, 2).tolist()


@given(st.lists(st.integers(0, 4), max_size=40))
def test_turns_count_earlier_steps_of_the_same_dataset(order: list[int]) -> None:
    expected = [order[:step].count(dataset) for step, dataset in enumerate(order)]
    assert turns(np.array(order, np.int64)).tolist() == expected


def test_what_can_not_be_mixed() -> None:
    for arguments, message in [
        (([1, 2], "proportionally"), "Did you mean 'proportional'"),
        (([], "proportional"), "they have none"),
        (([3, 0], "proportional"), "they have 3, 0"),
        (([3, 1], "temperature", 0, 0, 0.0), "above 0"),
    ]:
        with pytest.raises(InputError, match=message):
            mix(*arguments)  # type: ignore[arg-type]
