"""Charts: values lie where they belong, odd values leave gaps, letters do not grow with the page."""

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from munjang.pages.bars import Bar, bars, histogram
from munjang.pages.chart import MAX_POINTS, Axis, Point, Series, chart, smoothed, thin, ticks


def drawn(points: list[Point], **options: Any) -> ElementTree.Element:
    made = chart("Loss", [Series("loss", points)], Axis("update", low=0, is_whole=True), Axis(), **options)
    return ElementTree.fromstring(made)


def percents(figure: ElementTree.Element, tag: str, name: str) -> list[float]:
    return [float(shape.get(name, "").removesuffix("%")) for shape in figure.iter(tag)]


def test_dots_lie_where_their_values_are() -> None:
    figure = drawn([Point(10, 1.0), Point(20, 0.5), Point(40, 0.25)])
    x, y = percents(figure, "circle", "cx"), percents(figure, "circle", "cy")
    assert x[1] - x[0] == pytest.approx((x[2] - x[1]) / 2, abs=0.02)  # 10 and 20 updates
    assert y[1] - y[0] == pytest.approx(2 * (y[2] - y[1]), abs=0.02)  # down by 0.5 and 0.25
    labels = {text.text: text.get("y", "") for text in figure.iter("text") if text.get("class") == "up"}
    assert float(labels["1.0"].removesuffix("%")) == pytest.approx(y[0], abs=0.01)
    assert [title.text for title in figure.iter("title")] == ["Loss", "10: 1.0000", "20: 0.5000", "40: 0.2500"]


def test_letters_keep_their_size() -> None:
    """Only curves stretch: what holds letters and dots has no viewBox."""
    figure = drawn([Point(1, 1.0), Point(2, 0.5)])
    outer, inner = figure.iter("svg")
    assert outer.get("viewBox") is None
    assert inner.get("viewBox") == "0 0 100 100"
    assert [shape.tag for shape in inner.iter()] == ["svg", "path"]


def test_it_says_what_it_shows() -> None:
    figure = drawn([Point(10, 1.5), Point(20, 0.25), Point(30, 0.5)])
    picture = next(figure.iter("svg"))
    assert picture.get("role") == "img"
    assert [part.tag for part in picture][:2] == ["title", "desc"]
    assert picture.findtext("desc") == "From 1.5000 at 10 to 0.5000 at 30, between 0.2500 and 1.5000."


def test_values_that_are_not_finite_leave_a_gap() -> None:
    values = [1.0, 0.5, math.nan, 0.25, math.inf, 0.125, 0.0625]
    figure = drawn([Point(step, value) for step, value in enumerate(values, 1)])
    (path,) = [path.get("d", "") for path in figure.iter("path")]
    assert path.count("M") == 3
    assert "nan" not in path
    assert "inf" not in path
    assert len(list(figure.iter("circle"))) == 5
    assert "2 values are left out" in "".join(figure.itertext())
    assert "Nothing to draw yet." in chart("x", [Series("x", [Point(1, math.nan)])], Axis(), Axis())


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e299, -1e299], [0.5]])
def test_equal_and_huge_values_are_drawn(values: list[float]) -> None:
    heights = percents(drawn([Point(step, value) for step, value in enumerate(values, 1)]), "circle", "cy")
    assert len(heights) == len(values)
    assert all(0 <= height <= 100 for height in heights)


def test_a_legend_names_several_series_in_their_colours() -> None:
    series = [Series("a<b", [Point(0, 1)], 2), Series("c", [Point(1, 0)], 3, "dots")]
    made = chart("x", series, shape="map", note="near")
    assert '<span class="spot colour-2 line"></span>a&lt;b' in made
    assert made.count('class="dot colour-3"') == 1
    assert "<figcaption>near</figcaption>" in made
    assert 'class="key"' not in chart("x", series, has_legend=False)
    assert 'class="key"' not in chart("x", series[:1])


def test_a_mark_is_ringed_and_named() -> None:
    figure = drawn([Point(1, 0.5), Point(9, 0.75)], marks=[(Point(9, 0.75), "best 0.75")])
    (ring,) = [circle for circle in figure.iter("circle") if circle.get("class") == "mark"]
    (name,) = [text for text in figure.iter("text") if text.get("class") == "mark end"]
    assert (name.text, name.get("x"), name.get("y")) == ("best 0.75", ring.get("cx"), ring.get("cy"))


def test_thin_keeps_order_gaps_and_peaks() -> None:
    points = [Point(step, math.nan if 400 <= step < 600 else -step) for step in range(1000)]
    kept = thin(points, 100)
    assert [point.x for point in kept] == sorted(point.x for point in kept)
    assert any(math.isnan(point.y) for point in kept)
    assert {kept[0].x, kept[-1].x} == {0, 999}
    assert len(kept) <= 102
    peaks = [Point(step, 55.5 if step == 77_777 else math.sin(step / 9000)) for step in range(100_000)]
    assert Point(77_777, 55.5) in thin(peaks)
    assert len(thin(peaks)) <= MAX_POINTS + 2


def test_smoothed_is_a_weighted_mean_of_what_came_before() -> None:
    values = [4.0, 1.0, math.nan, 2.0]
    averages = [point.y for point in smoothed([Point(step, value) for step, value in enumerate(values)], 2)]
    # each weighs half as much as the next one; NaN neither counts nor is drawn
    assert averages[:2] == pytest.approx([4, (4 + 2 * 1) / 3], rel=1e-12)
    assert math.isnan(averages[2])
    assert averages[3] == pytest.approx((4 + 2 * 1 + 4 * 2) / 7, rel=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.13, 0.52, ["0.2", "0.3", "0.4", "0.5"]),
        (0, 2.1e-5, ["0", "5e-6", "1e-5", "1.5e-5", "2e-5"]),
        (0, 12_345, ["0", "5,000", "10,000"]),
        (-1, 1, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
        (0.80001, 0.80002, ["0.800010", "0.800012", "0.800014", "0.800016", "0.800018", "0.800020"]),
        (0, 3e7, ["0", "1e7", "2e7", "3e7"]),
    ],
)
def test_ticks_are_round(low: float, high: float, labels: list[str]) -> None:
    assert [label for _, label in ticks(low, high)] == labels


def test_ticks_of_updates_are_whole() -> None:
    assert ticks(0, 1, 5, is_whole=True) == [(0.0, "0"), (1.0, "1")]
    labels = [label for _, label in ticks(0, 2_000_000, 5, is_whole=True)]
    assert labels == ["0", "500,000", "1,000,000", "1,500,000", "2,000,000"]


def test_bars_are_as_long_as_their_share() -> None:
    figure = ElementTree.fromstring(
        bars("x", [("a", [Bar("<one>", 0.5, "50"), Bar("two", 1.0, "100", 1)]), (None, [Bar("less", -0.4, "-40")])])
    )
    widths = percents(figure, "rect", "width")
    assert widths[1] == 2 * widths[0] > 0
    assert widths[2] == 0
    assert {"a", "<one>", "50", "100", "-40"} <= {text.text for text in figure.iter("text")}
    assert figure.findtext(".//desc") == "3 values; the largest is two: 100."
    assert "Nothing to draw" in bars("x", [])


def test_histogram_counts() -> None:
    assert histogram("x", np.zeros(0, np.float32)) == ""
    equal = histogram("x", np.full(5, 0.3, np.float32))
    assert equal.count("<rect") == 40
    assert (equal.count(": 5<"), equal.count(": 0<")) == (1, 39)
