"""Reports: JSON there and back, aligned tables, the undefined said."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.evaluation.metrics.bootstrap import draw, interval, spearman_of
from munjang.evaluation.metrics.correlation import spearman
from munjang.evaluation.report import Report, comparisons, details, dumps, shown, table

GOOD = Report("a", "sts", "stsb", 1379, {"spearman_cosine": 0.8203, "pearson_cosine": 0.5}, "spearman_cosine", 1.5)
UNDEFINED = Report("모델", "sts", "stsb", 1379, {"spearman": math.nan}, "spearman", notes=("one row",))
PAIRS = Report("a", "pairs", "질문", 20, {"ap": 0.5, "f1_threshold": 0.71234}, "ap")


def test_json_there_and_back() -> None:
    records = json.loads(dumps([GOOD, UNDEFINED]))
    assert records[0]["metrics"] == {"spearman_cosine": 0.8203, "pearson_cosine": 0.5}
    assert records[1]["metrics"] == {"spearman": None}  # NaN is no JSON
    assert Report.from_json(records[0]) == GOOD
    assert math.isnan(Report.from_json(records[1]).score)
    assert Report.from_json(records[1]).notes == ("one row",)


def test_table_puts_models_side_by_side() -> None:
    assert table([GOOD, PAIRS, UNDEFINED]).splitlines() == [
        "dataset  kind    rows  metric                         a       모델",
        "stsb     sts    1,379  spearman_cosine, spearman  82.03  undefined",
        "질문     pairs     20  ap                         50.00",
    ]


def test_details() -> None:
    assert details(PAIRS) == ["ap                50.00", "f1_threshold     0.7123"]
    assert details(UNDEFINED)[-1] == "note: one row"
    assert str(PAIRS).splitlines()[0].split() == ["dataset", "kind", "rows", "metric", "a"]
    assert shown("ap", None) == ""


def test_not_a_report() -> None:
    with pytest.raises(InputError, match="not a report"):
        Report.from_json({"model": "a"})


def test_confidence_and_differences() -> None:
    random = np.random.default_rng(0)
    gold = random.random(300)
    close, far = gold + random.normal(0, 0.1, 300), gold + random.normal(0, 0.6, 300)
    reports = []
    for name, scores in (("close", close), ("far", far), ("close too", close)):
        draws = draw(spearman_of(scores, gold))
        metrics = {"pearson": 0.5, "spearman": spearman(scores, gold)}
        reports.append(Report(name, "sts", "set", 300, metrics, "spearman", interval=interval(draws), draws=draws))
    low, high = reports[0].interval or (0, 0)
    assert low < reports[0].score < high
    assert f"({100 * low:.2f} to {100 * high:.2f}, 95 % confidence)" in details(reports[0])[1]
    better, same = comparisons(reports)
    assert better.startswith("set: close over far: +")
    assert better.endswith("p < 0.01: significant")
    assert same.endswith("+0.00 (+0.00 to +0.00), p = 1.00: not significant")
    records = json.loads(dumps(reports))
    assert records[1]["differences"]["close"]["value"] == pytest.approx(reports[1].score - reports[0].score)
    assert records[1]["differences"]["close"]["is_significant"]
    assert "draws" not in records[0]
    assert Report.from_json(records[0]) == reports[0]
    elsewhere = replace(reports[1], dataset="another")  # other rows can't be paired
    assert comparisons([reports[0], elsewhere]) == []
