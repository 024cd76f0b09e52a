import math
import re
import time
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from munjang.pages.chart import MAX_POINTS
from munjang.training.config import TrainConfig, deciding
from munjang.training.report import best_of, write_report
from munjang.training.run import Run
from tests.pages.reading import Page

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
    figures = [ElementTree.fromstring(figure) for figure in re.findall("<figure.*?</figure>", page, re.DOTALL)]
    return [picture for figure in figures if (picture := figure.find("svg")) is not None]


def tips(picture: ElementTree.Element, kind: str = "dot") -> list[str]:
    return [
        circle.findtext("title", "") for circle in picture.iter("circle") if kind in circle.get("class", "").split()
    ]


def test_curves_tables_and_the_best_evaluation(tmp_path: Path) -> None:
    lines = [line(10, 1.5), evaluation(10, 0.61, 0.7), line(20, 0.75), evaluation(20, 0.8125, 0.65), line(30, 0.5)]
    text = report(tmp_path, [*lines, evaluation(30, 0.79, 0.6)])
    page = Page(text)
    loss, rate, speed, sts, pairs = pictures(text)
    # over three lines each weighs 2/3 of the next: (1.5 * 2 + 0.75 * 3) / 5, and so on
    assert tips(loss) == ["10: 1.5000", "20: 1.0500", "30: 0.7895"]
    assert tips(rate)[0] == "10: 2e-5"
    assert tips(speed)[-1] == "30: 130.0"
    assert tips(sts, "mark") == ["20: 0.8125"]
    assert tips(pairs, "mark") == ["20: 0.6500"]
    assert [text.text for text in sts.iter("text")][-1] == "best 0.8125"
    assert [text.text for text in pairs.iter("text")][-1] == "kept 0.6500"
    assert loss.findtext("desc") == "From 1.5000 at 10 to 0.5000 at 30, between 0.5000 and 1.5000."
    assert ["sts|<dev>", "spearman", "0.8125", "0.7900"] in page.rows
    assert ["sts|<dev>", "rows", "1,500", "1,500"] in page.rows
    assert ["dataset", "metric", "best (update 20)", "last (update 30)"] in page.rows
    assert ["nli <b>&\ufffd.tsv", "12,345", "in_batch", "32", "no_duplicates", "ab12cd"] in page.rows
    assert "30 of 4,000" in page.words
    assert "0.8125 at update 20 sts|<dev>" in page.words


def test_settings_show_which_are_not_the_default(tmp_path: Path) -> None:
    page = Page(report(tmp_path, []))
    found = {row[0]: row[1] for row in page.rows}
    assert found["learning_rate"] == "3e-05"
    assert found["clip"] == "1.0"
    assert found["max_steps"] == "–"
    assert found["model"] == "f00d"
    assert page.bold == ["32", "3e-05", "sts-dev.tsv"]


def test_one_file_that_fetches_nothing(tmp_path: Path) -> None:
    assert Page(report(tmp_path, [line(10, 1.0), evaluation(10, 0.5)])).fetched == ["a #main"]


def test_letters_keep_their_size_with_one_evaluation_file(tmp_path: Path) -> None:
    """One chart has the whole width of the page: a viewBox would stretch its letters with it."""
    lines = [line(10, 1.0), evaluation(10, 0.5)]
    del lines[1]["evaluation"]["on"]["pairs"]
    assert [picture.get("viewBox") for picture in pictures(report(tmp_path, lines))] == [None] * 4


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
    assert "No evaluation was requested" in Page((tmp_path / "report.html").read_text()).words


def test_what_is_no_number_leaves_a_gap(tmp_path: Path) -> None:
    values = [1.0, 0.5, math.nan, 0.25, math.inf, 0.125, 0.0625]
    lines = [line(place, value) for place, value in enumerate(values, 1)]
    text = report(tmp_path, [*lines, evaluation(7, math.nan), evaluation(8, 0.5), evaluation(9, math.nan)])
    page, loss = Page(text), pictures(text)[0]
    assert [path.get("d", "").count("M") for path in loss.iter("path")] == [3, 3]
    assert len(tips(loss)) == 5
    assert "2 values are left out because they are not finite (NaN, ∞)." in page.words
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
    loss = pictures(page)[0]
    raw, _ = [path.get("d", "") for path in loss.iter("path")]
    assert raw.count("L") + 1 <= MAX_POINTS + 2
    assert f"{100 * 77_777 / 99_999 / 1.05:.2f} 4.55" in raw  # the peak, where axes have a margin of 5 %
    assert tips(loss)[0].startswith("0: ")
    assert tips(loss)[-1].startswith("99,999: ")


def test_a_report_that_can_not_be_written_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="report.html can't be written: .*No such file"):
        write_report(tmp_path / "nowhere" / "report.html", Run(tmp_path / "out"), CONFIG)


def test_no_warning_otherwise(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(tmp_path, [line(1, 1e299), line(2, -1e299), line(3, 1e305)])
