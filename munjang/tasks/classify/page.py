"""A classifier as a page: which labels it confuses, and whether its confidence equals its accuracy.    C classes."""

from collections.abc import Mapping, Sequence
from typing import Any

from munjang.pages.bars import Bar, bars
from munjang.pages.blocks import heat, section
from munjang.pages.chart import Axis, Point, Series, chart
from munjang.pages.document import page
from munjang.pages.html import Html, Phrase, element, say, shorten

MAX_LABELS = 40  # drawn of a confusion matrix
MAX_NAME = 40  # characters of a label
# field of a report: its phrase
FIGURES = {
    "rows": "examples",
    "held_out": "held_out",
    "accuracy": "accuracy",
    "macro_f1": "macro_f1",
    "micro_f1": "micro_f1",
    "calibration_error_before": "calibration_error_before",
    "calibration_error": "calibration_error",
    "temperature": "temperature",
    "threshold": "threshold",
    "answered": "answered",
    "answered_accuracy": "answered_accuracy",
    "cost": "cost",
}


def classifier_page(title: str | Phrase, labels: Sequence[Any], report: Mapping[str, Any]) -> str:
    """Return the page of a report of held-out (or other labelled) rows."""
    figures = {say(key): _figure(report[name]) for name, key in FIGURES.items() if report.get(name) is not None}
    sections = [element("p", f"{note}.", class_="hint") for note in report.get("notes", ())]
    if report.get("counts"):
        most = max(report["counts"].values())
        rows = [Bar(name, count / most, f"{count:,}") for name, count in report["counts"].items()]
        sections.append(bars(say("labels"), [(None, rows)]))
    if report.get("confusion"):
        sections.append(_confusion([str(label) for label in labels], report["confusion"]))
    if report.get("reliability"):
        sections.append(_reliability(report.get("reliability_before"), report["reliability"]))
    return page(title, figures, sections)


def _confusion(names: Sequence[str], counts_CC: Sequence[Sequence[int]]) -> Html:
    shown = list(range(len(names)))
    if len(shown) > MAX_LABELS:  # those with most mistakes, in their order
        mistakes = [sum(row) - row[label] for label, row in enumerate(counts_CC)]
        shown = sorted(sorted(shown, key=lambda label: -mistakes[label])[:MAX_LABELS])
    tips = [[f"{names[row]} → {names[column]}: {counts_CC[row][column]}" for column in shown] for row in shown]
    counts = [[counts_CC[row][column] for column in shown] for row in shown]
    matrix = heat([shorten(names[label], MAX_NAME) for label in shown], counts, tips)
    is_cut = len(shown) < len(names)
    cut = element("p", say("worst_labels", shown=len(shown), total=len(names)), class_="hint") if is_cut else None
    return section(say("confusion"), cut, matrix, note=say("confusion_note"))


def _reliability(before: Sequence[Sequence[float]] | None, after: Sequence[Sequence[float]]) -> Html:
    series = [Series(say("calibrated"), _points(after), colour=2)]
    if before:
        series.append(Series(say("before_calibration"), _points(before), colour=3))
    diagonal = Series(say("confidence_is_accuracy"), [Point(0, 0), Point(1, 1)], shape="dashed")
    return chart(
        say("reliability"),
        [*series, diagonal],
        Axis(say("confidence"), 0, 1),
        Axis(say("accuracy_axis"), 0, 1),
        note=say("reliability_note"),
        shape="square",
    )


def _points(bins: Sequence[Sequence[float]]) -> list[Point]:
    total = sum(count for count, _, _ in bins)
    return [
        Point(
            confidence,
            accuracy,
            say("reliability_point", count=f"{count:,.0f}", confidence=f"{confidence:.3f}", accuracy=f"{accuracy:.3f}"),
            radius=3 + 6 * (count / total) ** 0.5,
        )
        for count, confidence, accuracy in bins
    ]


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
