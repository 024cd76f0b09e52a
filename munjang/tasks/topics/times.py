"""Topics over time: how many texts of each topic every period has, and what its terms are then."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from munjang.errors import InputError
from munjang.tasks.terms_of_groups import Terms, terms_of
from munjang.tasks.topics.model import NO_TOPIC, TopicModel
from munjang.types import Array

MAX_VALUES = 50  # different times up to so many are periods of their own


@dataclass(frozen=True)
class TopicAtTime:
    """A topic in one period: `start` is the period's first moment, a number or an ISO date."""

    topic: int
    start: float | str
    size: int
    terms: Terms


def topics_over_time(
    found: TopicModel, times: Sequence[Any] | Array, num_periods: int | None = None, num_terms: int = 5
) -> list[TopicAtTime]:
    """Count every topic in every period that has texts of it, in order of topic and time.

    `times` has one for each text: all numbers (years), or all dates or ISO texts such as 2024-05, 2024-05-01T10:00 or
    2024-05-01T10:00+09:00; they are in UTC where no offset is given, and periods are. Without `num_periods` every
    different time is a period, or there are ten. Terms tell a topic in its period from all others: they are weighed
    among all topics of all periods at once.

    Raises InputError where there are not as many times as texts, or a time can't be read.

    >>> from munjang import BiEncoder
    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "A cat eats.", "A kitten eats."]
    >>> found = find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=1))
    >>> [(each.start, each.size) for each in topics_over_time(found, [2024, 2024, 2024, 2025])]
    [(2024, 3), (2025, 1)]
    """
    times = _listed(times)
    if len(times) != len(found.texts):
        raise InputError(f"There are {len(times)} times for {len(found.texts)} texts.")
    if num_periods is not None and num_periods < 1:
        raise InputError(f"num_periods must be at least 1, not {num_periods}.")
    moments = [_moment(time, row) for row, time in enumerate(times)]
    starts = _starts(moments, num_periods)
    is_date = _are_dates(times)
    groups: dict[tuple[int, float], list[str]] = defaultdict(list)
    for text, topic, moment in zip(found.texts, found.topic_of_N.tolist(), moments, strict=True):
        if topic != NO_TOPIC:
            groups[topic, max(start for start in starts if start <= moment)].append(text)
    keys = sorted(groups)
    terms = terms_of([groups[key] for key in keys], num_terms, found.naming.max_words)
    return [
        TopicAtTime(topic, _iso(start) if is_date else _number(start), len(groups[topic, start]), each)
        for (topic, start), each in zip(keys, terms, strict=True)
    ]


def _starts(moments: list[float], num_periods: int | None) -> list[float]:
    distinct = sorted(set(moments))
    if num_periods is None and len(distinct) <= MAX_VALUES:
        return distinct
    low, high, count = distinct[0], distinct[-1], num_periods or 10
    return [low + (high - low) * place / count for place in range(count)] if high > low else [low]


def _listed(times: Sequence[Any] | Array) -> Sequence[Any]:
    if not isinstance(times, np.ndarray):
        return times
    is_date = times.dtype.kind == "M"
    listed: list[Any] = (times.astype("datetime64[us]") if is_date else times).tolist()  # nanoseconds become numbers
    return listed


def _are_dates(times: Sequence[Any]) -> bool:
    """Tell whether these are dates and not numbers; a year among dates would be a second of 1970."""
    rows = {isinstance(time, (str, date)): row for row, time in enumerate(times)}
    if len(rows) == 2:
        raise InputError(
            f"Time {rows[True]} is a date, {times[rows[True]]!r:.40}, and time {rows[False]} a number, "
            f"{times[rows[False]]!r:.40}; give all as dates, or all as numbers."
        )
    return True in rows


def _moment(time: Any, row: int) -> float:
    """Return a number as it is, or the seconds of a date."""
    if isinstance(time, str):
        text = time.strip()
        try:
            time = datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
        except ValueError:
            raise InputError(
                f"Time {row}, {time!r:.40}, is not a date such as 2024-05-01; give numbers as numbers."
            ) from None
    if isinstance(time, datetime):
        return time.replace(tzinfo=time.tzinfo or UTC).timestamp()
    if isinstance(time, date):
        return datetime(time.year, time.month, time.day, tzinfo=UTC).timestamp()
    if isinstance(time, (int, float)) and not isinstance(time, bool) and math.isfinite(time):
        return float(time)
    raise InputError(f"Time {row} is {time!r:.40} ({type(time).__name__}), not a number or a date.")


def _number(start: float) -> float:
    return int(start) if start.is_integer() else start  # a year is no 2020.0


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    is_day = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return moment.strftime("%Y-%m-%d" if is_day else "%Y-%m-%dT%H:%M:%S")
