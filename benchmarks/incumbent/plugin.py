"""A plugin of pytest for the tests of sentence-transformers: choose the library, give it data, write down outcomes.

COMPAT_SIDE is `ours` or `theirs`, COMPAT_OUTCOMES the file for the outcomes, one JSON object a line.
"""

import json
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.incumbent import alias
from benchmarks.incumbent.data import load_dataset

SIDE = os.environ["COMPAT_SIDE"]
OUTCOMES = Path(os.environ["COMPAT_OUTCOMES"])
# How Python and munjang.compat say that a name or an argument is not there
ABSENT = re.compile(
    r"MissingName|NotCovered|NameNotCovered|AttributeNotCovered|is not covered by munjang|does not cover"
    r"|benchmarks\.incumbent\.alias|has no attribute|unexpected keyword argument|does not take "
    r"|cannot import name|No module named"
)

if SIDE == "ours":
    alias.install()
try:
    import datasets

    datasets.load_dataset = load_dataset
except ImportError:
    pass


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, Any]:
    """Write down how a test ended: passed, skipped, missing, or differing with the first line of its error."""
    report = yield
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        outcome, why = report.outcome, ""
        if report.outcome == "failed" or hasattr(report, "wasxfail"):
            why = f"{call.excinfo.typename}: {call.excinfo.value}" if call.excinfo else "xfail"
            outcome = "missing" if _is_absent(call.excinfo) else "differing"
        with OUTCOMES.open("a", encoding="utf-8") as file:
            row = {"test": item.nodeid, "outcome": outcome, "why": " ".join(why.split())[:300]}
            file.write(json.dumps(row) + "\n")
    return report


def _is_absent(excinfo: Any) -> bool:
    """Return whether the error, or one that it came from, says that something is not there."""
    error = excinfo.value if excinfo else None
    while error is not None:
        if ABSENT.search(f"{type(error).__name__}: {error}"):
            return True
        error = error.__cause__ or error.__context__
    return False


def pytest_collectreport(report: Any) -> None:
    """Write down files that can't be imported."""
    if report.failed:
        with OUTCOMES.open("a", encoding="utf-8") as file:
            why = str(report.longrepr).strip().splitlines()[-1][:300]
            file.write(json.dumps({"test": report.nodeid, "outcome": "file", "why": why}) + "\n")
