"""Texts with their keywords marked, as one HTML file that needs nothing else."""

import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from munjang.data.files import replacing
from munjang.tasks.phrases.candidates import edges
from munjang.tasks.phrases.keywords import Keyword
from munjang.text.korean import composed, has_hangul
from munjang.training.report import clean

MOST_TEXTS = 2000  # that a page shows
STYLE = """
:root { color-scheme: light dark; --page: #fff; --card: #f6f8f7; --text: #1c2321; --quiet: #5d6966; --mark: 11 110 79; }
@media (prefers-color-scheme: dark) { :root { --page: #121715; --card: #1b2220; --text: #e6ecea; --quiet: #9aa8a4;
  --mark: 83 199 157; } }
body { margin: 0 auto; padding: 1rem; max-width: 56rem; background: var(--page); color: var(--text);
  font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; } p.note, li small { color: var(--quiet); }
article { background: var(--card); border-radius: .5rem; padding: .75rem 1rem; margin: .75rem 0;
  unicode-bidi: isolate; }
mark { color: inherit; background: rgb(var(--mark) / .25); border-radius: .2rem; padding: 0 .1rem; }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; margin: .5rem 0 0; }
li { border-radius: 1rem; padding: 0 .6rem; unicode-bidi: isolate; }
"""


def write_keywords(
    path: str | os.PathLike[str], texts: Sequence[str], rows: Sequence[Sequence[Keyword]], title: str = "Munjang"
) -> None:
    """Write the page whole or not at all; more than 2,000 texts are cut, and it says so."""
    shown = [_article(text, row) for text, row in zip(texts[:MOST_TEXTS], rows, strict=False)]
    note = f'<p class="note">The first {MOST_TEXTS:,} of {len(texts):,} texts.</p>' if len(texts) > MOST_TEXTS else ""
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(clean(title))}</title><style>{STYLE}</style><h1>{escape(clean(title))}</h1>{note}"
        f"{''.join(shown)}</html>\n"
    )
    with replacing(Path(path)) as file:
        file.write(page.encode())


def _article(text: str, row: Sequence[Keyword]) -> str:
    best = max((each.score for each in row), default=1.0) or 1.0
    items = "".join(
        f'<li style="background: rgb(var(--mark) / {0.35 * max(each.score / best, 0.1):.2f})" dir="auto">'
        f"{escape(clean(each.text))} <small>{each.score:.2f}</small></li>"
        for each in row
    )
    shown, *phrases = composed(clean(each) for each in (text, *(keyword.text for keyword in row)))
    return f'<article dir="auto">{_marked(shown, phrases)}<ul>{items}</ul></article>'


def _marked(text: str, phrases: Sequence[str]) -> str:
    """The text with its phrases marked where they stand as they are; of two that overlap, the longer."""
    ways = [_pattern(text, phrase.split()) for phrase in sorted(phrases, key=len, reverse=True) if phrase.split()]
    if not ways:
        return escape(text)
    found, end = [], 0
    for match in re.finditer("|".join(ways), text, re.IGNORECASE):
        found += [escape(text[end : match.start()]), f"<mark>{escape(match[0])}</mark>"]
        end = match.end()
    return "".join([*found, escape(text[end:])])


def _pattern(text: str, words: Sequence[str]) -> str:
    """The words in a row, but not inside a longer word."""
    before, after = edges(" ".join(words))
    inside = r"\W+".join(map(re.escape, words)) + after
    if has_hangul(words[0][0]) and not re.search(before + inside, text, re.IGNORECASE):
        return inside  # the analyser found it where no space does: 학교 in 그학교
    return before + inside
