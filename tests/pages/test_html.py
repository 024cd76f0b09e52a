"""Elements and phrases: every text is escaped, both languages say everything."""

import math
import re
from pathlib import Path

import pytest

from munjang.pages.html import Html, clean, element, inline, number, say, shorten
from munjang.pages.words import WORDS

HOSTILE = '</title><script>alert(1)</script>"><img src=x onerror=alert(1)>\u202e\x00'
PACKAGE = Path(__file__).parents[2] / "munjang"


def test_texts_and_attributes_are_escaped() -> None:
    made = element("p", HOSTILE, HOSTILE, title=HOSTILE, class_=None, hidden=True)
    assert made.startswith('<p title="&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;&lt;img')
    assert '" hidden="">' in made
    assert "class" not in made
    assert not re.search("<script|<img|\u202e|\x00", made)


def test_values_of_a_phrase_are_escaped_and_never_filled_in_again() -> None:
    made = element("h1", say("training_of", name=HOSTILE + "{name}"))
    assert made.count("&lt;script&gt;") == 2  # in the attribute and in the text
    assert not re.search("<script|<img", made)
    assert "{name}</h1>" in made


def test_markup_is_left_alone_and_lists_are_joined() -> None:
    assert inline([Html("<b>1</b>"), "<i>", None, 1234, say("rows")]) == (
        '<b>1</b>&lt;i&gt;1,234<span data-say="rows">rows</span>'
    )
    assert element("input", aria_label=say("search_texts")) == (
        '<input aria-label="Search the texts" data-say-label="search_texts">'
    )


def test_texts_are_cleaned_and_shortened() -> None:
    assert clean("a\ud800\u202e\x00b") == "a\ufffd\ufffd\ufffdb"
    assert shorten("one\n two", 20) == "one two"
    assert shorten("one two three", 8) == "one two…"


def test_numbers() -> None:
    values = [0.81234567, 2e-5, 12345.678, 12000, 0.0, -0.5, 1e12, math.inf, "cosine", None]
    texts = ["0.8123", "2e-5", "12,345.7", "12,000", "0", "-0.5000", "1e12", "∞", "cosine", "None"]
    assert [number(value) for value in values] == texts


@pytest.mark.parametrize("key", WORDS)
def test_both_languages_fill_in_the_same_values(key: str) -> None:
    english, korean = ({*re.findall(r"\{(\w+)\}", words)} for words in WORDS[key])
    assert english == korean
    assert all(name.islower() and "_" not in name for name in english)  # they are attributes: data-NAME


def test_every_phrase_is_known_and_used() -> None:
    """Keys that a program composes (reason_equal) are told by how they begin."""
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*") if path.suffix in (".py", ".js", ".html")}
    ours = {path: text for path, text in sources.items() if "server" not in path.parts and path.name != "words.py"}
    called = {key for text in ours.values() for key in re.findall(r'\b(?:say|phrase)\("(\w+)"', text)}
    assert called <= set(WORDS)
    everything = "\n".join(ours.values())
    composed = ("reason_", "theme_", "column_", "paper_")
    assert [key for key in WORDS if f'"{key}"' not in everything and not key.startswith(composed)] == []
