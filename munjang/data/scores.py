"""Scores: what a column says about how similar two texts are, from 0 to 1; or a teacher's scores as they are.

N rows, K candidates.
"""

import json
import math
from collections.abc import Sequence

import numpy as np

from munjang.errors import InputError
from munjang.types import Doubles

SCORE_RANGES = ((0, 1), (-1, 1), (0, 5), (0, 10), (0, 100))  # smallest first


def read_scores(values: Sequence[object], problems: dict[int, str]) -> Doubles:
    """Read the numbers [N] of one column; a row without a number is added to `problems`."""
    return np.array([_number(value, row, problems) for row, value in enumerate(values)], np.float64)


def read_candidates(columns: Sequence[Sequence[object]], problems: dict[int, str]) -> Doubles:
    """Read the scores [N, K] of K columns."""
    return np.stack([read_scores(column, problems) for column in columns], axis=1)


def read_lists(values: Sequence[object], num_candidates: int, problems: dict[int, str]) -> Doubles:
    """Read the scores [N, K] of a column that holds lists: of JSON or Parquet, or numbers with spaces between."""
    scores_NK = np.full((len(values), num_candidates), np.nan)
    for row, value in enumerate(values):
        items = as_list(value)
        if items is None or len(items) != num_candidates:
            given = "no list of scores" if items is None else f"{len(items)} scores"
            problems.setdefault(
                row, f"{given} ({value!r:.40}), {num_candidates} wanted: one for each text but the first"
            )
        else:
            scores_NK[row] = [_number(item, row, problems) for item in items]
    return scores_NK


def as_list(value: object) -> list[object] | None:
    """Return the items of a list, however the format writes it; None if it is not one.

    >>> as_list("[1, 2.5]"), as_list("1 2.5"), as_list("1")
    ([1, 2.5], ['1', '2.5'], None)
    """
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    if not isinstance(value, str):
        return None
    if value.lstrip().startswith("["):
        try:
            return list(json.loads(value))
        except (ValueError, RecursionError):
            return None
    return list(value.split()) if len(value.split()) > 1 else None


def range_of(name: str, lowest: float, highest: float) -> tuple[float, float]:
    """Return the smallest of the known ranges that has these scores in it.

    >>> range_of("made up", 0.5, 4)
    (0.0, 5.0)
    """
    for low, high in SCORE_RANGES:
        if low <= lowest and highest <= high:
            return float(low), float(high)
    raise InputError(
        f"{name}: scores lie from {lowest:g} to {highest:g}, in none of the ranges that are known "
        f"({', '.join(f'{low} to {high}' for low, high in SCORE_RANGES)}). "
        "Give --score-range (score_range=), the lowest and the highest that a score can be"
    )


def scale(
    name: str, scores_N: Doubles, declared: tuple[float, float] | None, problems: dict[int, str]
) -> tuple[Doubles, str]:
    """Scale scores to 0 to 1; return them and a note that says from which range; bad rows are NaN."""
    good = scores_N[~np.isnan(scores_N)]
    if declared is None:
        if not good.size:
            return scores_N, ""
        low, high = range_of(name, good.min(), good.max())
    else:
        low, high = declared
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(f"score_range has to be a lowest and a highest score, such as (1, 5), not {declared}")
        for row in np.flatnonzero((scores_N < low) | (scores_N > high)).tolist():
            problems.setdefault(row, f"score {scores_N[row]:g} is not within {low:g} to {high:g}")
    how = f"found, as the values lie from {good.min():g} to {good.max():g}" if declared is None else "declared"
    return (scores_N - low) / (high - low), f"scores taken as {low:g} to {high:g} ({how}), and scaled to 0 to 1"


def _number(value: object, row: int, problems: dict[int, str]) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]  # what can't be converted is the point
    except (TypeError, ValueError):
        given = "no score" if value is None or value == "" else f"score {value!r:.40} is not a number"
        problems.setdefault(row, given)
        return math.nan
    if not math.isfinite(number):
        problems.setdefault(row, f"score {value!r:.40} is not a finite number")
        return math.nan
    return number
