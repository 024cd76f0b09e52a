"""The page of a classifier: every number of the report, nothing from elsewhere."""

from munjang.tasks.classify.page import classifier_page
from tests.pages.reading import Page

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
    found = classifier_page(HOSTILE, [HOSTILE, "b"], report)
    shown = {"title": 2, "note": 1, "bar": 3, "heads": 2, "cells": 4}
    assert found.encode().count("&lt;i&gt;green\ufffd\ufffd\ufffd".encode()) == sum(shown.values())
    assert "\u202e" not in found


def test_what_it_shows() -> None:
    shown = classifier_page("Spam & ham", ["ham", "<spam>"], REPORT)
    assert "Spam &amp; ham" in shown
    assert "one example of &lt;b&gt;." in shown
    assert "ham → &lt;spam&gt;: 1" in shown
    assert "&lt;spam&gt; → ham: 2" in shown
    assert ">8 rows, confidence 0.900, accuracy 0.875<" in shown
    assert "0.750" in shown
    assert "(none)" in shown
    assert '<td class="wrong" title="ham → &lt;spam&gt;: 1" style="--strength: 25%">1</td>' in shown
    assert Page(shown).fetched == ["a #main"]


def test_of_many_labels_the_worst_are_drawn() -> None:
    table = [[5 if row == column else 0 for column in range(60)] for row in range(60)]
    table[57][2] = 4
    shown = classifier_page("many", [f"label {number}" for number in range(60)], {"confusion": table})
    assert "The 40 of 60 labels with the most mistakes" in shown
    assert "label 57 → label 2: 4" in shown


def test_a_report_of_nothing() -> None:
    assert "<title>empty</title>" in classifier_page("empty", ["a", "b"], {"rows": 2})
