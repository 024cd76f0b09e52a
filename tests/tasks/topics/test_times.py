"""Topics over time: periods of years, dates and equal lengths."""

from datetime import UTC, date, datetime

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.topics.times import topics_over_time
from tests.tasks.topics.made import SIZES, found


def test_every_different_time_is_a_period() -> None:
    rows = topics_over_time(found(), [2020 + place % 2 for place in range(sum(SIZES))])
    assert [(each.topic, each.start, each.size) for each in rows] == [
        *((0, 2020, 15), (0, 2021, 15), (1, 2020, 10), (1, 2021, 10), (2, 2020, 6), (2, 2021, 6)),
    ]
    assert all(set(dict(each.terms)) <= {"cat", "kitten", "purr", "fur"} for each in rows[:2])


def test_periods_of_equal_length() -> None:
    rows = topics_over_time(found(), list(range(62)), num_periods=2)
    assert [(each.topic, each.start, each.size) for each in rows] == [
        (0, 0, 30),
        (1, 0, 1),
        (1, 30.5, 19),
        (2, 30.5, 12),
    ]
    assert len({each.start for each in topics_over_time(found(), list(range(62)))}) == 10  # too many for one each


@pytest.mark.parametrize("time", ["2024-05", "2024-05-01", date(2024, 5, 1), datetime(2024, 5, 1)])
def test_dates_come_back_as_dates(time: object) -> None:
    assert {each.start for each in topics_over_time(found(), [time] * 62)} == {"2024-05-01"}


def test_hours_are_kept() -> None:
    (first, *_) = topics_over_time(found(), ["2024-05-01T10:30"] * 62)
    assert first.start == "2024-05-01T10:30:00"


def test_offsets_count() -> None:
    times = ["2024-05-01T10:00+09:00", "2024-05-01T01:00Z", "2024-05-01T01:00", datetime(2024, 5, 1, 1, tzinfo=UTC)]
    rows = topics_over_time(found(), [times[place % 4] for place in range(62)])
    assert {each.start for each in rows} == {"2024-05-01T01:00:00"}


@pytest.mark.parametrize("times", [np.full(62, 2020), np.full(62, 2020.0, np.float32)])
def test_years_may_be_an_array(times: np.ndarray) -> None:
    assert {each.start for each in topics_over_time(found(), times)} == {2020}


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_may_be_an_array(unit: str) -> None:
    rows = topics_over_time(found(), np.full(62, np.datetime64("2024-05-01", unit)))
    assert {each.start for each in rows} == {"2024-05-01"}


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1], "1 times for 62 texts"),
        ([None] * 62, "Time 0 is None"),
        ([2020] * 61 + [float("nan")], "Time 61 is nan"),
        ([2020] * 61 + ["2024-05-01"], "Time 61 is a date, '2024-05-01', and time 60 a number, 2020"),
        (["May"] * 62, r"'May', is not a date such as 2024-05-01"),
    ],
)
def test_bad_times_are_refused(times: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        topics_over_time(found(), times)
    with pytest.raises(InputError, match="num_periods"):
        topics_over_time(found(), [1] * 62, num_periods=0)
