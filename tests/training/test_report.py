import math
import time
import warnings
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from munjang.training.config import TrainConfig, deciding
from munjang.training.report import MAX_POINTS, Point, best_of, number, smoothed, thin, ticks, write_report
from munjang.training.run import Run

CONFIG = TrainConfig(learning_rate=3e-5, evaluate=("sts-dev.tsv",), batch_size=32)
DATA = {"rows": 12345, "hash": "ab12cd", "objective": "in_batch", "batch_size": 32, "sampler": "no_duplicates"}
SETTINGS = {
    "model": "f00d",
    "data": {"0 nli <b>&\ud800.tsv": DATA},
    "config": deciding(CONFIG),
    "num_updates": 4000,
    "processes": 1,
    "version": "0.3.0",
}


class Page(HTMLParser):
    """A page's words, the rows of its tables, and what it would fetch; every tag has to be closed."""

    VOID = ("meta", "path", "line", "link", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.fetched: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.fetched += [f"{tag} {name}" for name, _ in attributes if name in ("src", "href", "xlink:href")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if ("class", "changed") in attributes:
            self.bold.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        if self.open[-1:] == ["span"] and self.bold and not self.bold[-1]:
            self.bold[-1] = data


def line(step: int, loss: float, rate: float = 2e-5) -> dict[str, Any]:
    return {"step": step, "epoch": 0, "loss": loss, "learning_rate": rate, "examples_per_s": 100.0 + step}


def evaluation(step: int, main: float, other: float = 0.5) -> dict[str, Any]:
    metrics = {"spearman": main, "pearson": other, "rows": 1500}
    on = {
        "sts|<dev>": {"kind": "sts", "main": "spearman", "metrics": metrics},
        "pairs": {"kind": "pairs", "main": "ap", "metrics": {"ap": other}},
    }
    return {"step": step, "evaluation": {"main": main, "name": "sts|<dev>", "on": on}}


def report(folder: Path, lines: list[dict[str, Any]], settings: dict[str, Any] | None = None) -> str:
    with Run(folder / "out") as run:
        run.begin(SETTINGS if settings is None else settings)
        for each in lines:
            run.log(each)
        write_report(run.folder / "report.html", run, CONFIG)
        assert not list(run.folder.glob("*.tmp"))
    return (folder / "out.training" / "report.html").read_text(encoding="utf-8")


def pictures(page: str) -> list[ElementTree.Element]:
    return [
        ElementTree.fromstring(part.partition("</svg>")[0] + "</svg>")
        for part in page.split("<figure>")[1:]
        for part in ["<svg" + part.partition("<svg")[2]]
        if part != "<svg"
    ]


def tips(picture: ElementTree.Element, kind: str = "dot") -> list[str]:
    return [
        circle.findtext("title", "") for circle in picture.iter("circle") if kind in circle.get("class", "").split()
    ]


def test_curves_tables_and_the_best_evaluation(tmp_path: Path) -> None:
    lines = [line(10, 1.5), evaluation(10, 0.61, 0.7), line(20, 0.75), evaluation(20, 0.8125, 0.65), line(30, 0.5)]
    text = report(tmp_path, [*lines, evaluation(30, 0.79, 0.6)])
    page = Page(text)
    loss, rate, speed, sts, pairs = pictures(text)
    assert tips(loss) == [
        f"update {step}, epoch 0, loss {value}" for step, value in ((10, "1.5000"), (20, "0.7500"), (30, "0.5000"))
    ]
    assert tips(rate)[0] == "update 10, epoch 0, learning rate 2e-5"
    assert tips(speed)[-1] == "update 30, epoch 0, examples/s 130.0"
    assert tips(sts, "best") == ["update 20, spearman 0.8125"]
    assert tips(pairs, "best") == ["update 20, ap 0.6500"]
    assert [each.text for each in sts.iter("text")][-1] == "best 0.8125"
    assert [each.text for each in pairs.iter("text")][-1] == "kept 0.6500"
    assert loss.get("aria-label") == ("Loss: loss 1.5000 at update 10, 0.5000 at update 30, between 0.5000 and 1.5000")
    assert ["sts|<dev>", "spearman", "0.8125", "0.7900"] in page.rows
    assert ["sts|<dev>", "rows", "1,500", "1,500"] in page.rows
    assert ["dataset", "metric", "best (update 20)", "last (update 30)"] in page.rows
    assert ["nli <b>&\ufffd.tsv", "12,345", "in_batch", "32", "no_duplicates", "ab12cd"] in page.rows
    words = "".join(page.words)
    assert "30 of 4,000" in words
    assert "0.8125 at update 20, sts|<dev>" in words


def test_dots_lie_where_their_values_are(tmp_path: Path) -> None:
    loss = pictures(report(tmp_path, [line(10, 1.0), line(20, 0.5), line(40, 0.25)]))[0]
    x, y = ([float(dot.get(name, "")) for dot in loss.iter("circle")] for name in ("cx", "cy"))
    assert x[1] - x[0] == pytest.approx((x[2] - x[1]) / 2, abs=0.1)  # 10 and 20 updates, to a tenth of a pixel
    assert y[1] - y[0] == pytest.approx(2 * (y[2] - y[1]), abs=0.2)  # down by 0.5 and 0.25
    grid = [
        (float(each.get("y1", "")), label.text)
        for each, label in zip(
            loss.iter("line"), [each for each in loss.iter("text") if each.get("text-anchor") == "end"], strict=False
        )
    ]
    height = next(place for place, label in grid if label == "1.0")
    assert y[0] == pytest.approx(height, abs=0.1)


def test_settings_show_which_are_not_the_default(tmp_path: Path) -> None:
    page = Page(report(tmp_path, []))
    found = {row[0]: row[1] for row in page.rows}
    assert found["learning_rate"] == "3e-05"
    assert found["clip"] == "1.0"
    assert found["max_steps"] == "–"
    assert found["model"] == "f00d"
    assert page.bold == ["32", "3e-05", "sts-dev.tsv"]


def test_one_file_that_fetches_nothing_for_both_colours(tmp_path: Path) -> None:
    text = report(tmp_path, [line(10, 1.0), evaluation(10, 0.5)])
    assert Page(text).fetched == []
    assert "url(" not in text
    assert "@import" not in text
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


@pytest.mark.parametrize("lines", [[], [line(1, 0.5)], [evaluation(5, 0.5)], [line(1, 0.0), line(2, 0.0)]])
def test_hardly_any_lines(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    text = report(tmp_path, lines)
    Page(text)
    assert len(pictures(text)) == (3 if "loss" in str(lines) else 2 if lines else 0)
    assert ("Nothing to draw yet." in text) == ("loss" not in str(lines))
    assert ("No evaluation yet." in text) == ("evaluation" not in str(lines))


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    run = Run(tmp_path / "out")
    write_report(tmp_path / "report.html", run, TrainConfig())
    assert "No evaluation was asked for" in "".join(Page((tmp_path / "report.html").read_text()).words)


def test_what_is_no_number_leaves_a_gap(tmp_path: Path) -> None:
    values = [1.0, 0.5, math.nan, 0.25, math.inf, 0.125, 0.0625]
    lines = [line(place, value) for place, value in enumerate(values, 1)]
    text = report(tmp_path, [*lines, evaluation(7, math.nan), evaluation(8, 0.5), evaluation(9, math.nan)])
    page, loss = Page(text), pictures(text)[0]
    paths = [path.get("d", "") for path in loss.iter("path")]
    assert [path.count("M") for path in paths] == [3, 3]
    assert len(tips(loss)) == 5
    assert "nan" not in "".join(paths)
    assert "inf" not in "".join(paths)
    assert "2 values that are no numbers (NaN, ∞) are left out." in "".join(page.words)
    assert ["sts|<dev>", "spearman", "0.5000", "NaN"] in page.rows


def test_only_nan_was_found() -> None:
    found = [(step, {"main": math.nan}) for step in (1, 2)]
    assert best_of(found) is found[0]  # the loop keeps the first
    assert best_of([]) is None
    assert best_of([(1, {"main": 0.5}), (2, {"main": 0.7}), (3, {"main": 0.7})]) == (2, {"main": 0.7})


def test_a_long_log_is_thinned_and_keeps_its_peaks(tmp_path: Path) -> None:
    losses = [1 + math.sin(step / 9000) for step in range(100_000)]
    losses[77_777] = 55.5
    text = '{"step": %d, "epoch": 0, "loss": %r, "learning_rate": 2e-05, "examples_per_s": 1.0}\n'
    with Run(tmp_path / "out") as run:
        run.begin(SETTINGS)
        (run.folder / "log.jsonl").write_text("".join(text % (step, loss) for step, loss in enumerate(losses)))
        started = time.process_time()
        write_report(run.folder / "report.html", run, CONFIG)
        assert time.process_time() - started < 10
    page = (tmp_path / "out.training" / "report.html").read_text()
    assert len(page) < 500_000
    found = tips(pictures(page)[0])
    assert len(found) <= MAX_POINTS + 2
    assert "update 77,777, epoch 0, loss 55.5000" in found
    assert found[0].startswith("update 0,")
    assert found[-1].startswith("update 99,999,")


def test_thin_keeps_order_and_gaps() -> None:
    points = [Point(step, math.nan if 400 <= step < 600 else -step) for step in range(1000)]
    found = thin(points, 100)
    assert [point.step for point in found] == sorted(point.step for point in found)
    assert any(math.isnan(point.value) for point in found)
    assert {found[0].step, found[-1].step} == {0, 999}
    assert len(found) <= 102


def test_smoothed_is_a_weighted_mean_of_what_came_before() -> None:
    values = [4.0, 1.0, math.nan, 2.0]
    found = smoothed([Point(step, value) for step, value in enumerate(values)], 2)
    # each weighs half as much as the next one; NaN neither counts nor is drawn
    assert [point.value for point in found[:2]] == pytest.approx([4, (4 + 2 * 1) / 3], rel=1e-12)
    assert math.isnan(found[2].value)
    assert found[3].value == pytest.approx((4 + 2 * 1 + 4 * 2) / 7, rel=1e-12)


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
    assert [label for _, label in ticks(0, 2_000_000, 5, is_whole=True)] == [
        "0",
        "500,000",
        "1,000,000",
        "1,500,000",
        "2,000,000",
    ]


def test_numbers() -> None:
    given = [0.81234567, 2e-5, 12345.678, 12000, 0.0, -0.5, 1e12, math.inf, "cosine", None]
    shown = ["0.8123", "2e-5", "12,345.7", "12,000", "0", "-0.5000", "1e12", "∞", "cosine", "None"]
    assert [number(value) for value in given] == shown


def test_a_report_that_can_not_be_written_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="report.html can't be written: .*No such file"):
        write_report(tmp_path / "nowhere" / "report.html", Run(tmp_path / "out"), CONFIG)


def test_no_warning_otherwise(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(tmp_path, [line(1, 1e299), line(2, -1e299), line(3, 1e305)])
