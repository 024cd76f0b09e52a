"""The page of a classifier: every number of the report, nothing from elsewhere."""

import re

from munjang.tasks.classify.page import page

REPORT = {
    "rows": 12,
    "accuracy": 0.75,
    "notes": ["one example of <b>"],
    "confusion": [[3, 1], [2, 6]],
    "reliability_before": [[12, 0.4, 0.75]],
    "reliability": [[4, 0.5, 0.5], [8, 0.9, 0.875]],
    "counts": {"spam": 5, "(none)": 7},
}

HOSTILE = "<i>green\ud800\u202e\x00"  # half of a surrogate pair, text turned round, a zero


def test_odd_letters_are_replaced() -> None:
    report = {"notes": [HOSTILE], "counts": {HOSTILE: 1}, "confusion": [[1, 1], [1, 1]]}
    found = page(HOSTILE, [HOSTILE, "b"], report)
    assert found.encode().count("&lt;i&gt;green\ufffd\ufffd\ufffd".encode()) == 2 + 1 + 1 + 2 + 4
    assert "\u202e" not in found


def test_what_it_shows() -> None:
    shown = page("Spam & ham", ["ham", "<spam>"], REPORT)
    assert "Spam &amp; ham" in shown
    assert "one example of &lt;b&gt;." in shown
    assert "ham → &lt;spam&gt;: 1" in shown
    assert "&lt;spam&gt; → ham: 2" in shown
    assert "calibrated: 8 rows, confidence 0.900, accuracy 0.875" in shown
    assert "0.750" in shown
    assert "(none)" in shown
    assert not re.search(r"(src|href)=", shown)
    assert "://" not in shown.replace("http://www.w3.org/2000/svg", "")
    assert "Content-Security-Policy" in shown


def test_of_many_labels_the_worst_are_drawn() -> None:
    table = [[5 if row == column else 0 for column in range(60)] for row in range(60)]
    table[57][2] = 4
    shown = page("many", [f"label {number}" for number in range(60)], {"confusion": table})
    assert "The 40 of 60 labels with most mistakes" in shown
    assert "label 57 → label 2: 4" in shown


def test_a_report_of_nothing() -> None:
    assert "<h1>empty</h1>" in page("empty", ["a", "b"], {"rows": 2})
