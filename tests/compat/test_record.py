"""What `make compat-check` and the run of the examples recorded."""

import json
from pathlib import Path

from benchmarks.incumbent.differences import DIFFERENCES

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
MIN_PASSED = 1300  # of the incumbent's own tests that can run without a network
MIN_SCRIPTS = 100  # of its examples that use only names that are there
MIN_RAN = 30  # of those, really run


def test_the_incumbents_tests_pass_and_what_differs_has_a_reason() -> None:
    record = json.loads((RESULTS / "compat-checkout.json").read_text(encoding="utf-8"))
    assert record["passed"] >= MIN_PASSED
    assert record["unexplained"] == {}
    assert set(record["reasons"]) <= set(DIFFERENCES)
    counts = [
        sum(file.get(name, 0) for file in record["files"].values()) for name in ("passed", "missing", "differing")
    ]
    assert counts == [record["passed"], record["missing"], record["differing"]]
    assert sum(counts) == record["can_run"]


def test_examples_use_names_that_are_there() -> None:
    record = json.loads((RESULTS / "compat-examples.json").read_text(encoding="utf-8"))
    assert record["names_are_there"] >= MIN_SCRIPTS
    assert record["ran"] >= MIN_RAN
    assert record["ran"] == sum(each["outcome"] == "ran" for each in record["outcomes"].values())
