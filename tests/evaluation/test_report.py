"""Reports: JSON there and back, aligned tables, the undefined said."""

import json
import math

import pytest

from munjang.errors import InputError
from munjang.evaluation.report import Report, details, dumps, shown, table

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
