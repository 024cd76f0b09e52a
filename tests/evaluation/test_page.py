"""The page of reports: bars as long as the metric, every metric, everything escaped."""

import math
import re

from munjang.evaluation.page import reports_page
from munjang.evaluation.report import Report
from tests.pages.reading import Page

REPORTS = [
    Report("a<b", "sts", "stsb & more", 10, {"spearman": 0.5, "pearson": 0.25}, "spearman", notes=("it's <short>",)),
    Report("other", "sts", "stsb & more", 10, {"spearman": 1.0}, "spearman"),
    Report("other", "sts", "constant", 10, {"spearman": math.nan}, "spearman"),
    Report("other", "sts", "opposite", 10, {"spearman": -0.4}, "spearman"),
]


def test_bars_are_as_long_as_the_metric() -> None:
    shown = reports_page(REPORTS)
    drawn = re.findall(r'<rect class="length colour-(\d+)"[^>]*width="([\d.]+)%"', shown)
    widths = [float(width) for _, width in drawn]
    assert widths[1] == 2 * widths[0] > 0
    assert widths[2:] == [0, 0]  # undefined, and negative: the number says it
    values = re.findall(r'<text class="value"[^>]*>(.*?)</text>', shown)
    assert values == ["50.00", "100.00", "undefined", "-40.00"]
    assert [colour for colour, _ in drawn] == ["0", "1", "1", "1"]


def test_every_metric_of_every_model() -> None:
    page = Page(reports_page(REPORTS))
    assert page.fetched == ["a #main"]
    assert "It's <short>." in page.words
    assert ["dataset", "kind", "rows", "metric", "a<b", "other"] in page.rows
    assert ["stsb & more", "sts", "10", "spearman", "50.00", "100.00"] in page.rows
    assert ["pearson", "25.00", ""] in page.rows  # every metric, not the main one alone
    assert "stsb & more (sts)" in page.words
