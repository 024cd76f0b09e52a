"""Texts with their keywords marked, as a page."""

import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from munjang.data.files import replacing
from munjang.pages.blocks import first_of
from munjang.pages.document import page
from munjang.pages.html import Html, Phrase, clean, element, say
from munjang.tasks.keywords.candidates import edges
from munjang.tasks.keywords.extract import Keyword
from munjang.text.korean import composed, has_hangul

MAX_TEXTS = 2000  # shown


def write_keywords(
    path: str | os.PathLike[str],
    texts: Sequence[str],
    rows: Sequence[Sequence[Keyword]],
    title: str | Phrase = "Munjang",
) -> None:
    """Write the page whole or not at all; it shows the first 2,000 texts."""
    figures = {say("texts"): len(texts), say("keywords"): sum(map(len, rows))}
    articles = (_article(text, row) for text, row in zip(texts[:MAX_TEXTS], rows, strict=False))
    subtitle = first_of(min(len(texts), MAX_TEXTS), len(texts))
    with replacing(Path(path)) as file:
        file.write(page(title, figures, [element("div", *articles, class_="items")], subtitle).encode())


def _article(text: str, row: Sequence[Keyword]) -> Html:
    best = max((keyword.score for keyword in row), default=1.0) or 1.0
    chips = (
        element(
            "span",
            keyword.text,
            element("small", f"{keyword.score:.2f}"),
            class_="chip",
            dir="auto",
            style=f"--strength: {26 * max(keyword.score / best, 0.1):.0f}%",
        )
        for keyword in row
    )
    shown, *phrases = composed(clean(words) for words in (text, *(keyword.text for keyword in row)))
    about = element("div", *chips, class_="about") if row else element("div", say("no_keywords"), class_="about")
    return element("article", element("p", _marked(shown, phrases)), about, class_="item", dir="auto")


def _marked(text: str, phrases: Sequence[str]) -> Html:
    """Mark the phrases of a text where they stand as they are; of two that overlap, the longer."""
    patterns = [_pattern(text, phrase.split()) for phrase in sorted(phrases, key=len, reverse=True) if phrase.split()]
    if not patterns:
        return Html(escape(text))
    parts, end = [], 0
    for match in re.finditer("|".join(patterns), text, re.IGNORECASE):
        parts += [escape(text[end : match.start()]), element("mark", match[0])]
        end = match.end()
    return Html("".join([*parts, escape(text[end:])]))


def _pattern(text: str, words: Sequence[str]) -> str:
    """Return a pattern of the words in a row, but not inside a longer word."""
    before, after = edges(" ".join(words))
    inside = r"\W+".join(map(re.escape, words)) + after
    if has_hangul(words[0][0]) and not re.search(before + inside, text, re.IGNORECASE):
        return inside  # the analyser found it where no space does: 학교 in 그학교
    return before + inside
