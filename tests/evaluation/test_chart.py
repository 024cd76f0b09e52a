"""Charts and pages: well-formed, self-contained, everything escaped."""

import math
from html.parser import HTMLParser
from xml.etree import ElementTree

from munjang.evaluation.chart import page, svg
from munjang.evaluation.report import Report

REPORTS = [
    Report("a<b", "sts", "stsb & more", 10, {"spearman": 0.5, "pearson": 0.25}, "spearman", notes=("it's <short>",)),
    Report("other", "sts", "stsb & more", 10, {"spearman": 1.0}, "spearman"),
    Report("other", "sts", "constant", 10, {"spearman": math.nan}, "spearman"),
    Report("other", "sts", "opposite", 10, {"spearman": -0.4}, "spearman"),
]


def test_bars_are_as_long_as_the_metric() -> None:
    root = ElementTree.fromstring(svg(REPORTS))
    widths = [float(each.get("width", 0)) for each in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths[1] == 2 * widths[0] > 0
    assert widths[2:] == [0, 0]  # undefined, and negative: the number says it
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a<b", "50.00", "100.00", "undefined", "-40.00"} <= set(texts)
    colours = [each.get("fill") for each in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert colours[0] != colours[1] == colours[2]


def test_page_needs_nothing_else() -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.text = ""

        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag not in ("script", "link", "img", "iframe")
            if tag not in ("meta", "rect"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag != "rect":
                assert self.open.pop() == tag

        def handle_data(self, data: str) -> None:
            self.text += data

    tags = Tags()
    tags.feed(page(REPORTS))
    assert tags.open == []
    assert "It's <short>." in tags.text
    assert "25.00" in tags.text  # every metric, not the main one alone
