"""Long pages of Korean Wikipedia: the passages of an article together, and a question that one of them answers."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from recipes.models.asked import ASKED_ABOUT, SENTENCE, Asked, analysed, korean_query, write_asked
from recipes.models.sources import file, read_table

LENGTHS = range(800, 1800)  # characters
NAMED = 0.3  # of the questions that don't name what the article is about


def pages(data: Path, out: Path) -> None:
    """Write questions with the pages that they were made from, as a table."""
    random = np.random.default_rng(14)
    chosen = []
    for title, parts in _articles(data):
        page = _page(parts)
        good = [each.strip() for each in SENTENCE.findall(page) if len(each.strip()) in ASKED_ABOUT]
        if len(page) in LENGTHS and good:
            chosen.append((title, page, good[int(random.integers(len(good)))]))
    morphemes = analysed([sentence for *_, sentence in chosen])

    def pairs() -> Iterator[Asked]:
        for (title, page, _), tokens in zip(chosen, morphemes, strict=True):
            query = korean_query(tokens, random)
            is_bare = query is not None and title not in query
            yield (f"{title} {query}" if is_bare and random.random() < NAMED else query), page

    print(f"{write_asked('pages', pairs(), out):,} of {len(chosen):,} pages have a question", flush=True)


def _articles(data: Path) -> Iterator[tuple[str, list[str]]]:
    table = read_table(file(data, "text/ko-wiki"), ("title", "text"))
    for title, rows in groupby(zip(table["title"], table["text"], strict=True), key=lambda row: row[0]):
        yield title, [text for _, text in rows]


def _page(parts: list[str]) -> str:
    """Put passages together up to the longest page."""
    page = ""
    for part in parts:
        longer = f"{page} {part}".strip()
        if len(longer) >= LENGTHS.stop:
            break
        page = longer
    return page
