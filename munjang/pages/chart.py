"""The chart of every page: lines and points over two axes, as SVG whose letters keep their size at any width.

Positions are percentages of the plot, sizes of letters and dots are pixels: so the SVG may be as wide as its place.
Only curves are drawn in a coordinate system of 100 by 100 that stretches; their strokes do not.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from munjang.pages.html import Html, Phrase, element, number, say, short_exponent

NUM_COLOURS = 12  # of the palette in base.css
MAX_POINTS = 600  # of a curve: more than a screen has pixels for
MAX_DOTS = 40  # a curve with more points shows its dots only under the pointer
MAX_FINITE = 1e300  # the difference of two smaller numbers is finite too
Words = str | Phrase


class Point(NamedTuple):
    """A value, what the pointer shows of it, and the radius of its dot in pixels."""

    x: float
    y: float
    tip: Words = ""
    radius: float = 3


@dataclass(frozen=True)
class Series:
    """Points in one colour; `shape` is line, pale (a line behind another), dashed (without dots) or dots."""

    name: Words
    points: Sequence[Point]
    colour: int = 0
    shape: str = "line"


@dataclass(frozen=True)
class Axis:
    """The label and the range of an axis; a range of None fits the values."""

    label: Words | None = None
    low: float | None = None
    high: float | None = None
    is_whole: bool = False  # whole numbers alone


class Frame(NamedTuple):
    """The ranges of both axes."""

    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        """Return the position from the left in percent."""
        return 100 * (value - self.left) / (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the position from the top in percent."""
        return 100 * (self.high - value) / (self.high - self.low)


def chart(
    title: Words,
    series: Sequence[Series],
    across: Axis | None = None,
    upwards: Axis | None = None,
    marks: Sequence[tuple[Point, Words]] = (),
    note: Words | None = None,
    shape: str = "wide",
    has_legend: bool = True,
) -> Html:
    """Draw series over two axes; without axes they are a map. `shape`: wide, square or map."""
    drawn = [point for each in series for point in each.points if is_finite(point.y)]
    if not drawn:
        return figure(title, element("p", say("chart_empty"), class_="hint"))
    num_missing = sum(not is_finite(point.y) for each in series for point in each.points)
    left, right = _range([point.x for point in drawn], across or Axis())
    frame = Frame(left, right, *_range([point.y for point in drawn], upwards or Axis()))
    parts = [
        *_axes(frame, across, upwards),
        *(part for each in series for part in _series(each, frame)),
        *(part for point, words in marks if is_finite(point.y) for part in _mark(point, words, frame)),
    ]
    has_axes = across is not None or upwards is not None
    description = _ends(series[0].points) if has_axes else say("chart_points", count=len(drawn))
    notes = [note, say("chart_left_out", count=num_missing) if num_missing else None]
    return figure(title, picture(title, description, parts, f"plot {shape}"), series if has_legend else (), notes)


def figure(title: Words, content: Html, series: Sequence[Series] = (), notes: Sequence[Words | None] = ()) -> Html:
    """Frame a picture with its title, a legend where there are several series, and notes."""
    entries = [
        element("li", element("span", class_=f"spot colour-{each.colour} {each.shape}"), each.name) for each in series
    ]
    return element(
        "figure",
        element("h3", title),
        element("ul", *entries, class_="key") if len(entries) > 1 else None,
        content,
        *(element("figcaption", note) for note in notes if note),
        class_="card",
    )


def picture(title: Words, description: Words, parts: Sequence[Html], kind: str, height: int | None = None) -> Html:
    """Wrap drawn parts into an SVG that says what it shows; `height` in pixels where the style sheet sets none."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        role="img",
        class_=kind,
        height=height,
    )


def thin(points: Sequence[Point], max_points: int = MAX_POINTS) -> list[Point]:
    """Keep about `max_points`: the lowest and the highest of each stretch, so that no peak is lost."""
    if len(points) <= max_points:
        return list(points)
    size, kept = math.ceil(2 * len(points) / max_points), []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        drawn = [point for point in stretch if is_finite(point.y)] or stretch[:1]
        ends = {min(drawn, key=lambda point: point.y), max(drawn, key=lambda point: point.y)}
        ends |= set(drawn[:1] if start == 0 else drawn[-1:] if start + size >= len(points) else ())
        kept += sorted(ends, key=lambda point: point.x)
    return kept


def smoothed(points: Sequence[Point], window: float) -> list[Point]:
    """Average each point with the ones before it, weights falling over about `window` points."""
    keep, total, weight, averages = 1 - 1 / window, 0.0, 0.0, []
    for point in points:
        if is_finite(point.y):
            total, weight = keep * total + (1 - keep) * point.y, keep * weight + (1 - keep)
        averages.append(point._replace(y=total / weight if is_finite(point.y) else math.nan))
    return averages


def ticks(low: float, high: float, max_ticks: int = 6, is_whole: bool = False) -> list[tuple[float, str]]:
    """Return round values between two ends, and how they are written.

    >>> ticks(0.13, 0.52)
    [(0.2, '0.2'), (0.30000000000000004, '0.3'), (0.4, '0.4'), (0.5, '0.5')]
    """
    rough = (high - low) / (max_ticks - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= 0.999 * rough)
    step = max(step, 1.0) if is_whole else step
    values = [place * step for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    size, digits = max(abs(low), abs(high)), max(0, -math.floor(math.log10(step) + 1e-9))
    if not is_whole and not 1e-3 <= size < 1e6:
        return [(value, short_exponent(value, 6)) for value in values]
    return [(value, f"{value:,.{digits}f}") for value in values]


def is_finite(value: object) -> bool:
    """Tell whether a value is a number that can be drawn."""
    return isinstance(value, (int, float)) and abs(value) < MAX_FINITE


def _range(values: Sequence[float], axis: Axis) -> tuple[float, float]:
    low = min(values) if axis.low is None else min(axis.low, *values)
    high = max(values) if axis.high is None else max(axis.high, *values)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # all the same: a line in the middle
        room = 0.1 * abs(high) or 1.0
        return low - (0 if axis.low is not None else room), high + room
    room = 0.05 * (high - low)
    return (low if low == axis.low else low - room), (high if high == axis.high else high + room)


def _axes(frame: Frame, across: Axis | None, upwards: Axis | None) -> Iterator[Html]:
    if upwards is not None:
        for value, label in ticks(frame.low, frame.high):
            y = f"{frame.y(value):.2f}%"
            yield element("line", class_="grid", x1=0, x2="100%", y1=y, y2=y)
            yield element("text", label, class_="up", x=-8, y=y, dy=4)
        if upwards.label:
            yield element("text", upwards.label, class_="label", x=-52, y=-14)
    if across is not None:
        for value, label in ticks(frame.left, frame.right, 5, across.is_whole):
            yield element("text", label, class_="along", x=f"{frame.x(value):.2f}%", y="100%", dy=18)
        if across.label:
            yield element("text", across.label, class_="label end", x="100%", y="100%", dy=36)


def _series(series: Series, frame: Frame) -> Iterator[Html]:
    points, colour = thin(series.points) if series.shape != "dots" else series.points, f"colour-{series.colour}"
    if series.shape != "dots":
        curve = element("path", class_=f"curve {series.shape} {colour}", d=_path(points, frame))
        yield element("svg", curve, viewBox="0 0 100 100", preserveAspectRatio="none")
    if series.shape in ("line", "dots"):
        kind = "dot far" if series.shape == "line" and len(points) > MAX_DOTS else "dot"
        yield from (_dot(point, f"{kind} {colour}", frame) for point in points if is_finite(point.y))


def _path(points: Sequence[Point], frame: Frame) -> str:
    """Return lines through the points, with gaps where a value is not finite."""
    parts = []
    for can_draw, stretch in groupby(points, lambda point: is_finite(point.y)):
        if can_draw:
            places = [f"{frame.x(point.x):.2f} {frame.y(point.y):.2f}" for point in stretch]
            parts.append(f"M{' L'.join(places)}{'' if len(places) > 1 else ' h0'}")
    return " ".join(parts)


def _dot(point: Point, kind: str, frame: Frame) -> Html:
    tip = point.tip or f"{number(point.x)}: {number(point.y)}"
    x, y = f"{frame.x(point.x):.2f}%", f"{frame.y(point.y):.2f}%"
    return element("circle", element("title", tip), class_=kind, cx=x, cy=y, r=f"{point.radius:g}")


def _mark(point: Point, words: Words, frame: Frame) -> Iterator[Html]:
    yield _dot(point._replace(radius=6), "mark", frame)
    x, y = frame.x(point.x), frame.y(point.y)
    kind, aside = ("mark", 4) if x < 50 else ("mark end", -4)
    yield element("text", words, class_=kind, x=f"{x:.2f}%", y=f"{y:.2f}%", dx=aside, dy=-11)


def _ends(points: Sequence[Point]) -> Phrase:
    drawn = [point for point in points if is_finite(point.y)] or [Point(math.nan, math.nan)]
    values = [point.y for point in drawn]
    return say(
        "chart_ends",
        first=values[0],
        start=drawn[0].x,
        last=values[-1],
        end=drawn[-1].x,
        low=min(values),
        high=max(values),
    )
