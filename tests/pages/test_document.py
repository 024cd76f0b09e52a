"""A page: one file that fetches nothing, runs nothing but its own scripts and holds the words that it says."""

import base64
import hashlib
import json
import re

import numpy as np

from munjang.pages.bars import Bar, bars, histogram
from munjang.pages.blocks import chips, facts, first_of, heat, section, table
from munjang.pages.chart import Point, Series, chart
from munjang.pages.document import page
from munjang.pages.html import say
from tests.pages.reading import Page
from tests.pages.test_html import HOSTILE


def hostile_page() -> str:
    points = [Point(0, 1, HOSTILE), Point(1, 0, HOSTILE)]
    sections = [
        section(HOSTILE, table([HOSTILE], [[HOSTILE], [say("training_of", name=HOSTILE)]]), note=HOSTILE),
        chart(HOSTILE, [Series(HOSTILE, points, shape="dots"), Series(HOSTILE, points)], note=HOSTILE),
        bars(HOSTILE, [(HOSTILE, [Bar(HOSTILE, 1, HOSTILE)])], HOSTILE),
        histogram(HOSTILE, np.array([0.1, 0.2], np.float32)),
        heat([HOSTILE], [[1]], [[HOSTILE]]),
        chips([HOSTILE]),
    ]
    return page(HOSTILE, {say("texts"): HOSTILE}, sections, HOSTILE, data=[HOSTILE])


def test_hostile_texts_stay_texts() -> None:
    text = hostile_page()
    Page(text)
    assert text.count("<script>alert") == text.count("<img") == 0
    assert "\u202e" not in text
    assert "\x00" not in text
    assert text.count("&lt;script&gt;") >= 25
    (data,) = re.findall(r'id="data">(.*?)</script>', text)
    assert json.loads(data) == [HOSTILE]


def test_nothing_is_fetched_and_only_known_scripts_run() -> None:
    text = hostile_page()
    assert Page(text).fetched == ["a #main"]
    assert not re.search(r"url\(|@import|://", text.replace("http://www.w3.org/2000/svg", ""))
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert rules["script-src"] == " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert len(scripts) == 2


def test_it_brings_the_words_that_it_says() -> None:
    text = page(say("evaluation"), {say("rows"): 1}, script='say("liked");')
    (words,) = re.findall(r'id="words">(.*?)</script>', text)
    known = json.loads(words)
    assert known["evaluation"] == ["Evaluation", "평가"]
    assert {"rows", "liked", "skip", "written_by", "theme_dark"} <= set(known)
    assert "training_of" not in known


def test_light_and_dark_and_phones() -> None:
    text = page("x")
    assert "color-scheme: light dark" in text
    assert 'name="viewport"' in text
    assert '<h1 dir="auto">x</h1>' in text
    assert "<title>x</title>" in text


def test_columns_of_numbers_are_aligned() -> None:
    made = table(["a", "b", "c"], [["x" * 30, 0.5, "1,200"], ["y", 3, "–"]])
    assert made.count('class="number"') == 2 + 4
    assert made.count('class="text"') == 2
    assert "0.5000" in made


def test_facts_and_notes() -> None:
    assert facts({say("texts"): 1234}) == (
        '<dl class="facts"><div><dt data-say="texts">Texts</dt><dd>1,234</dd></div></dl>'
    )
    assert first_of(3, 3) is None
    assert str(first_of(3, 1000)) == "The first 3 of 1,000."
